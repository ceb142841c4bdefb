// Command sandbox is a whole Kubernetes control plane in one binary. Called sandbox, it starts and
// stops sandboxes. Called by the name of a component (etcd, kube-apiserver, kubectl, …), for
// example by a symlink next to it, it is that component.
package main

import (
	"os"
	"path/filepath"
	"slices"

	"lockstep.run/lockstep/sandbox/internal/command"
	"lockstep.run/lockstep/sandbox/internal/components"
	"lockstep.run/lockstep/sandbox/internal/program"
)

func main() {
	if name := filepath.Base(os.Args[0]); slices.Contains(program.Names(), name) {
		components.Run(name)
	}
	os.Exit(command.Main())
}
