// Command bench measures the cost of the engine: requests, seconds, processor time and memory. It
// starts a control plane for this, and compares the results with docs/design/budget.md.
//
//	./task bench
//	./task bench -- --workload 100x10
//	./task bench -- --workload 1000 --scenarios install,drift --profile profiles
//
// Each workload gets its own sandbox and manager, with the service account and RBAC of config. The
// package measure documents the method. Here, main.go runs the workloads of presets.go that flags
// select, and report.go prints the measurements as tables in Markdown. The exit code is 1 if a
// limit is exceeded.
package main
