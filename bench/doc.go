// Command bench measures what the engine costs: requests, seconds, processor
// time and memory, on a control plane that it starts for the purpose, and holds
// it against docs/design/budget.md.
//
//	./task bench
//	./task bench -- --workload 100x10
//	./task bench -- --workload 1000 --scenarios install,drift --profile profiles
//
// Each workload gets a sandbox and a manager of its own, with the service account
// and RBAC of config. The package measure says how things are measured. Here,
// main.go runs the workloads that flags choose of presets.go, and report.go prints
// the measurements as tables in Markdown. The exit code is 1 if a limit is not kept.
package main
