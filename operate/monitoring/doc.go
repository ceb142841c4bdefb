// Package monitoring tests metrics, alerts and the dashboard with Prometheus itself, which is built from a module of its own,
// tools/prometheus: its rules by promtool, its queries by a server that scrapes a manager of a sandbox.
package monitoring
