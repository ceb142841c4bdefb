// Package measure installs, changes and deletes packages on a sandbox and reports the cost: the
// requests, the time between cause and effect, the manager's processor time and memory. The command
// bench prints the results. The test e2e/budget compares the counts with docs/design/budget.md.
//
//	c := measure.Start(tb, measure.Workload{Objects: 50, Phases: 5, Packages: 1}, measure.Options{})
//	m := c.Workload.Scenarios()[0].Run(c)
//	over := measure.Exceeded(measure.Budget(measure.Install, c.Workload, c.Raw, m), m)
//
// The data flow:
//
//	cause ─► manager ─► API server ─► audit log ─► Entries ─► Tally, Span ─► Measurement ─► limits
//
// Everything is counted in the API server's audit log, by the manager's user name, and never in the
// manager itself. Watches and requests for the manager's Lease are left out. Dry runs, refused
// requests, statuses and events are included. Times come from the audit log as well: from the arrival of the request
// that is the cause to the end of the one that is the effect. Only the receipt of an event by a
// watcher, and the start of a process, use this process's clock, which belongs to the same machine.
//
//   - count.go, span.go, latency.go and budget.go are pure: audit entries become counts and times,
//     which are compared with limits;
//   - workload.go has the packages to install;
//   - cluster.go starts a sandbox and a manager, and measures around an action;
//   - install.go, drift.go, upgrade.go, history.go, restart.go, teardown.go, transitions.go,
//     neighbour.go and offers.go have the scenarios: each causes something, waits for the effect,
//     and returns the audit entries of the cause and the effect;
//   - tester.go lets a command use functions for the end-to-end tests.
//
// docs/design/budget.md explains the figures.
package measure
