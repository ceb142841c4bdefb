package metrics

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// Names are unique and start with the project, labels do not collide with the labels that
// Prometheus adds, and each metric has a meaning.
func TestTable(t *testing.T) {
	t.Parallel()
	reserved := []string{"job", "instance", "namespace", "pod", "container", "endpoint", "service", "node", "le", "quantile"}
	seen := map[string]bool{}
	for _, m := range All() {
		if seen[m.Name] || !regexp.MustCompile(`^(lockstep|package_operator)_[a-z_]+$`).MatchString(m.Name) {
			t.Errorf("the name %s is duplicate or invalid", m.Name)
		}
		seen[m.Name] = true
		if m.TypeName() == "counter" != (strings.HasSuffix(m.Name, "_total") && !strings.HasPrefix(m.Name, "package_operator_managed_cache_")) {
			t.Errorf("%s is a %s", m.Name, m.TypeName())
		}
		for _, label := range m.Labels {
			if slices.Contains(reserved, label) {
				t.Errorf("%s has the label %s, which Prometheus adds", m.Name, label)
			}
		}
		if !strings.HasSuffix(m.Help, ".") || m.Stability == "" || m.TypeName() == "histogram" && slices.Contains(m.Labels, labelName) {
			t.Errorf("%s: %q %s %v", m.Name, m.Help, m.Stability, m.Labels)
		}
	}
}

// A counter has all of its series from the start.
func TestInstruments(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range Instruments() {
		registry.MustRegister(c)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	series := map[string]int{}
	for _, family := range families {
		series[family.GetName()] = len(family.GetMetric())
		if family.GetType() == dto.MetricType_UNTYPED {
			t.Errorf("%s has no type", family.GetName())
		}
	}
	want := map[string]int{
		"lockstep_writes_total": 18, "lockstep_fights_total": 1, "lockstep_rollout_duration_seconds": 1, "lockstep_phase_duration_seconds": 1,
		"lockstep_load_duration_seconds": 2, "lockstep_pull_duration_seconds": 2,
	}
	if !maps.Equal(series, want) {
		t.Errorf("%v, want %v", series, want)
	}
}

func TestBound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ reason, value, want string }{
		{"as it is", "1.2.3", "1.2.3"},
		{"no UTF-8", "a\xffb", "a\uFFFDb"},
		{"too long", strings.Repeat("a", limits.MetricLabelBytes+1), strings.Repeat("a", limits.MetricLabelBytes-3) + "…"},
		{"not within a character", strings.Repeat("é", limits.MetricLabelBytes), strings.Repeat("é", limits.MetricLabelBytes/2-1) + "…"},
	} {
		got := Bound(tc.value)
		if got != tc.want || !utf8.ValidString(got) || len(got) > limits.MetricLabelBytes {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}
