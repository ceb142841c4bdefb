package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// alerts returns the page of alerts. Each has the parts of its description: indented commands, and
// a text.
func alerts(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}

	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `json:"alert"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}

	if err := yaml.Unmarshal(data, &file); err != nil {
		return "", err
	}

	var b strings.Builder
	b.WriteString(header("Alerts", "config/monitoring/rules.yaml"))
	b.WriteString("[`config/monitoring/rules.yaml`](../config/monitoring/rules.yaml) has alerts for Prometheus; the chart creates a PrometheusRule with `--set metrics.rules.enabled=true`. Each alert starts with a command, here and in its annotation `description`. For a ClusterPackage, write `clusterpackage/NAME` without `-n NAMESPACE`.\n")
	for _, rule := range file.Groups[0].Rules {
		text := prose(rule.Annotations["description"])
		text = strings.ReplaceAll(strings.Replace(text, "```text\n", "```sh\n", 1), "](../", "](")
		fmt.Fprintf(&b, "\n## %s\n%s", rule.Alert, text)
	}

	return b.String(), nil
}
