// Package rollout performs what package phases decides. It is the shell around
// the pure core: it turns sets and slices into revisions, watches their objects
// in a cluster.Cluster, performs the steps of a plan there, and records the outcome.
//
//	sets, slices ──► Load ──► phases.Revision ─┐
//	cluster: live state ─► Look ───────────────┼─► phases.Next ─► Engine ─► cluster: requests
//	Engine's own writes ─► phases.AppliedObjects ────┘
//
// A Rollout is the state of one owner (a deployment or a lone set). It is used
// by one reconcile at a time; the Tracker is what the watches of all kinds
// share: it knows which owner and which template an object belongs to.
//
// Each reconcile has a budget of time for probes, and results are cached: what is not
// evaluated yet is Unknown (evaluate.go). A teardown evaluates none.
//
// Nothing here is durable. What has to survive a crash is on the sets: that the
// claim was taken, and which phases were opened. Jobs that have finished are on the
// deployment; the Tracker remembers their ends until then.
package rollout
