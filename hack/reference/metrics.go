package main

import (
	"fmt"
	"strings"

	"lockstep.run/lockstep/internal/kube/metrics"
)

// metricsTable returns the page of metrics.
func metricsTable() string {
	var b strings.Builder
	b.WriteString(begin("Metrics", "internal/kube/metrics") + `[Watch the engine](administrate/watch.md) shows how to read them, and [alerts](alerts.md) has the alerts. Besides these are the usual ones of controller-runtime, the Go runtime and the process.
Those whose names begin with ` + "`package_operator`" + ` are Package Operator's. Only the leader has those with names of packages, repositories and templates. A scrape reads caches alone.

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
*Stable*: the name and the labels stay; one that goes is listed as deprecated for two minor versions. *Alpha*: may change in any minor version. Buckets of histograms may change.

## Limits

A package has at most 30 series, 22 of them for its eleven latest revisions, and none for each of its objects; a repository has six, an ObjectSet without a deployment two, an ObjectTemplate one, and at most ` + "`MetricKinds`" + ` kinds have series. So 5,000 packages that were upgraded ten times have 150,000 series, as many as a cluster of medium size; where others install packages, a ResourceQuota with ` + "`count/packages.package-operator.run`" + ` bounds them. A value of a label has at most ` + "`MetricLabelBytes`" + ` bytes and ends with … if it was longer: [limits](reference/limits.md).
`)
	return b.String()
}
