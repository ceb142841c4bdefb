// Command bench measures what the engine costs: requests, seconds, processor
// time and memory, on a control plane that it starts for the purpose.
//
//	./task bench
//	./task bench -- --objects 1000 --phases 10 --scenarios install,drift --json result.json
//
// Everything is counted in the API server's audit log, by the manager's user
// name, never in the manager itself. Each workload gets a sandbox and a manager
// of its own, with the service account and RBAC of config. Before the manager
// starts, the same API server is loaded with as many plain ConfigMaps, which
// gives the raw times of the run.
//
// The command is in four parts:
//
//   - account.go, budget.go and report.go are pure: audit entries become counts
//     and times, counts and times become rows, rows become tables;
//   - scenarios.go has one function per scenario: it causes something, waits for
//     the effect, and says which audit entries are the cause and the effect;
//   - run.go, raw.go and process.go start things and read the clock, the log
//     and /proc;
//   - tb.go lets a command use what the end-to-end tests share.
//
// docs/performance.md says what the figures mean.
package main
