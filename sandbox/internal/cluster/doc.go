// Package cluster runs a Kubernetes control plane and an OCI registry as plain
// processes of one machine, on loopback addresses and throwaway data.
//
// # Model
//
// A sandbox has a name and a data folder. One supervisor process per sandbox
// ([Run]) starts the components, which are this same binary under other names,
// restarts those that exit by themselves, and stops them in order: clients, API
// server, etcd, each with a deadline. [Up] starts a supervisor in a session of
// its own and returns when the sandbox is ready; [Down] stops it.
//
// # Who owns what
//
//   - state.json in the data folder names the supervisor and every component by
//     process id and start time, so that a recycled process id is never taken for ours.
//   - A lock file beside the data folder is held for as long as a supervisor lives.
//   - Every component holds a pipe to the supervisor and ends when it closes: a
//     supervisor that was killed leaves nothing running.
//   - A supervisor that finds the leftovers of another one in its folder removes them.
//
// # Isolation
//
// Each sandbox has its own certificate authority and a random etcd member name,
// which is checked before the API server may use that etcd. So two sandboxes
// cannot attach to each other, even when one loses a race for a port; it then
// tries again on other ports.
//
// Times are wall-clock durations, sizes are bytes unless said otherwise.
package cluster
