// Command bench measures what the engine costs: requests, seconds, processor
// time and memory, on a control plane that it starts for the purpose, and holds
// it against docs/design/budget.md.
//
//	./task bench
//	./task bench -- --workload 1000x4
//	./task bench -- --workload 1000 --scenarios install,drift --json result.json --profile profiles
//
// Each workload gets a sandbox and a manager of its own, with the service account
// and RBAC of config. How things are measured is the matter of the package
// measure; here is
//
//   - presets.go: the workloads that have a name, and which of the scenarios each runs;
//   - main.go: flags become a plan, which is run;
//   - report.go and table.go: measurements become rows, rows become tables and JSON;
//   - tb.go lets a command use what the end-to-end tests share.
//
// docs/design/budget.md says what the figures mean. The exit code is 1 where a limit
// is not kept, unless --check=false.
package main
