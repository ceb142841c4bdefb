package desired

import (
	"slices"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// PullSecretFlags name the Secrets with credentials for the registry of a package.
type PullSecretFlags struct {
	names   []string
	changed func(string) bool
}

// Add adds the flag to a command.
func (f *PullSecretFlags) Add(cmd *cobra.Command) {
	f.changed = cmd.Flags().Changed
	cmd.Flags().StringArrayVar(&f.names, "pull-secret", nil,
		"use the Secret with this `name` for the registry of the package; it is in the package's namespace, or in the manager's for a ClusterPackage; repeatable, \"\" removes all")
}

// Into sets the Secrets of the flags. Without flags, the Secrets of the package stay. An empty name
// removes all of them.
func (f *PullSecretFlags) Into(w *Package) {
	if w.changesPullSecrets = f.changed("pull-secret"); !w.changesPullSecrets {
		return
	}
	for _, name := range f.names {
		if ref := (corev1alpha1.LocalSecretReference{Name: name}); name != "" && !slices.Contains(w.pullSecrets, ref) {
			w.pullSecrets = append(w.pullSecrets, ref)
		}
	}
}
