package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/test/require"
)

// Every alert has a runbook that starts with a command, and reads only documented metrics.
func TestAlerts(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../config/monitoring/rules.yaml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	require.NoError(t, yaml.UnmarshalStrict(content, &file))
	page, err := os.ReadFile("alerts.md")
	require.NoError(t, err)
	metrics, err := os.ReadFile("metrics.md")
	require.NoError(t, err)
	alerts, states := map[string]bool{}, map[string]bool{}
	for _, rule := range file.Groups[0].Rules {
		alerts[rule.Alert] = true
		if !strings.Contains(string(page), "\n## "+rule.Alert+"\n\n```sh\nkubectl ") {
			t.Errorf("alerts.md has no section %s that starts with a command", rule.Alert)
		}
		if want := "docs/alerts.md#" + strings.ToLower(rule.Alert); rule.Annotations["runbook"] != want || rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
			t.Errorf("%s has %v and %v, want a severity, a summary and the runbook %s", rule.Alert, rule.Labels, rule.Annotations, want)
		}
		for _, words := range regexp.MustCompile(`last_over_time\(lockstep_package_summary\{summary=~"([^"]*)"`).FindAllStringSubmatch(rule.Expr, -1) {
			for word := range strings.SplitSeq(words[1], "|") {
				states[word] = true
			}
		}
		for _, name := range regexp.MustCompile(`(lockstep|package_operator)_\w+`).FindAllString(rule.Expr, -1) {
			if !strings.Contains(string(metrics), "| `"+name+"` |") {
				t.Errorf("%s reads %s, which metrics.md does not list", rule.Alert, name)
			}
		}
	}
	for _, word := range summary.All() {
		wanted := word != summary.Available && word != summary.Paused && word != summary.Awaiting
		if states[string(word)] != wanted {
			t.Errorf("an alert of packages that are %s: %t, want %t", word, !wanted, wanted)
		}
	}
	for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(page), -1) {
		if !alerts[heading[1]] {
			t.Errorf("alerts.md has %s, which is not an alert", heading[1])
		}
	}
}
