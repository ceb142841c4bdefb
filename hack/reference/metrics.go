package main

import (
	"fmt"
	"strings"

	"lockstep.run/lockstep/internal/kube/metrics"
)

// metricsTable returns the page of metrics.
func metricsTable() string {
	var b strings.Builder
	b.WriteString(header("Metrics", "internal/kube/metrics") + `[Watch the engine](administrate/watch.md) shows how to read the metrics, and [alerts](alerts.md) uses them. The manager also has the usual metrics of controller-runtime, the Go runtime and the process.
Metrics whose names start with ` + "`package_operator`" + ` are compatible with Package Operator. Only the leader has metrics with names of packages, repositories and templates. A scrape only reads caches.

| Metric | Type | Labels | Meaning | Stability |
|---|---|---|---|---|
`)
	for _, m := range metrics.All() {
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.TypeName(), labels, m.Help, m.Stability)
	}
	b.WriteString(`
*Stable*: name and labels stay; a metric is deprecated for two minor versions before it is removed. *Alpha*: can change in any minor version. Buckets of histograms can change.

## Limits

A package has at most 30 series, 22 of them for its eleven latest revisions, and none for each of its objects; a repository has six, an ObjectSet without a deployment two, an ObjectTemplate one, and at most ` + "`MetricKinds`" + ` kinds have series. So 5,000 packages that were upgraded ten times have 150,000 series, as many as a cluster of medium size. A ResourceQuota with ` + "`count/packages.package-operator.run`" + ` limits the packages of a namespace. A value of a label has at most ` + "`MetricLabelBytes`" + ` bytes and ends with … if it was longer: [limits](reference/limits.md).
`)
	return b.String()
}
