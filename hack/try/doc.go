// Command try demonstrates Lockstep on this machine. It starts a sandbox, or reuses the last one,
// installs config in it, runs the manager next to it under the service account of config, pushes
// the example operator to the sandbox's registry and installs it with kubectl-package.
//
// The sandbox's nodes are simulated, so the manager's own Deployment is scaled to zero, and the
// manager is a process of this machine. It ends with the sandbox, because it stops when it cannot
// renew its Lease.
//
// All files are in the folder try of the project's cache, next to the sandboxes' folder: the
// manager's kubeconfig, log and images. The program only uses the standard library and the code
// that finds the sandbox's binary, so that it starts at once.
package main
