// Command try shows Lockstep at work on this machine: it starts a sandbox, or
// takes the one of the last time, installs config in it, runs the manager beside
// it under the service account of config, pushes the example operator to the
// sandbox's registry and installs it with kubectl-package.
//
// The sandbox's nodes are simulated, so the manager's own Deployment is scaled to
// zero, and the manager is a process of this machine. It ends with the sandbox,
// because it stops when it cannot renew its Lease.
//
// Everything is kept in the folder try of the project's cache, beside that of the
// sandboxes: the manager's kubeconfig, log and images. The program uses the
// standard library and what finds the sandbox's binary, so that it starts at
// once.
package main
