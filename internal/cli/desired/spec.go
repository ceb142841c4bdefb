package desired

import (
	"fmt"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
)

// SpecFlags set fields of a package.
type SpecFlags struct {
	cluster   bool
	Component string
	Config    string
	Adopt     bool
	Given     func(flag string) bool
}

// Add adds the flags; verb begins their usage.
func (f *SpecFlags) Add(cmd *cobra.Command, verb string) {
	f.Given = cmd.Flags().Changed
	cmd.Flags().BoolVar(&f.cluster, "cluster", false, verb+" a ClusterPackage")
	cmd.Flags().StringVar(&f.Component, "component", "", "the component to install of a package that has several")
	cmd.Flags().StringVar(&f.Config, "config", "", "YAML or JSON `file` with the package's configuration, - for standard input")
	cmd.Flags().BoolVar(&f.Adopt, "adopt", false, "take over objects that exist already and that nothing controls (spec.collisionProtection: IfNoController)")
}

// Scoped adds the scope of --cluster to the name of arg.
func (f *SpecFlags) Scoped(n cluster.Name, arg string) (cluster.Name, error) {
	if f.cluster && n.Scope == corev1alpha1.ScopeNamespaced {
		return n, fmt.Errorf("%s and --cluster contradict each other", arg)
	}
	if f.cluster {
		n.Scope = corev1alpha1.ScopeCluster
	}
	return n, nil
}
