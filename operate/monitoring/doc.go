// Package monitoring tests metrics, alerts and the dashboard with Prometheus itself, which is built
// from a separate module, tools/prometheus: its rules with promtool, its queries with a server that
// scrapes a sandbox's manager.
package monitoring
