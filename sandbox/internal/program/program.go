// Package program names the programs that the sandbox's binary can be. It is separate from their
// code, which is large.
package program

import "slices"

// The names of the programs are also the names of the symlinks next to the binary.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
	Registry          = "registry"
)

// ParentFDEnv names the environment variable with the number of an inherited file descriptor: the
// reading end of a pipe whose writing end only the supervisor holds. A component ends when that
// pipe closes.
const ParentFDEnv = "LOCKSTEP_SANDBOX_PARENT_FD"

// Names lists every program, sorted.
func Names() []string {
	names := []string{Etcd, APIServer, ControllerManager, Scheduler, Kubectl, Kwok, Registry}
	slices.Sort(names)
	return names
}
