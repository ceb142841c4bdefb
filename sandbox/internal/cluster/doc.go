// Package cluster runs a Kubernetes control plane and an OCI registry as plain processes of one
// machine, on loopback addresses and with temporary data.
//
// # Model
//
// A sandbox has a name and a data folder. One supervisor process per sandbox ([Run]) starts the
// components, which are this same binary under other names, restarts those that exit by themselves,
// and stops them in order: clients, API server, etcd, each with a deadline. [Up] starts a
// supervisor in its own session and returns when the sandbox is ready; [Down] stops it.
//
// # Ownership
//
//   - state.json in the data folder names the supervisor and every component by process id and
//     start time, so that a recycled process id is never mistaken for ours.
//   - A supervisor holds a lock file next to the data folder as long as it lives.
//   - Every component holds a pipe to the supervisor and ends when it closes: a supervisor that was
//     killed leaves no process running.
//   - A supervisor that finds the remains of another one in its folder removes them.
//
// # Isolation
//
// Each sandbox has its own certificate authority and a random etcd member name, which is checked
// before the API server can use that etcd. So two sandboxes cannot attach to each other, even if
// one loses a race for a port. It then tries other ports.
//
// Times are wall-clock durations. Sizes are in bytes unless stated otherwise.
package cluster
