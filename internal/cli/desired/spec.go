package desired

import (
	"github.com/spf13/cobra"
)

// SpecFlags set fields of a package.
type SpecFlags struct {
	Cluster   bool
	Component string
	Config    string
	Adopt     bool
	Given     func(flag string) bool
}

// Add adds the flags. Their usage starts with verb.
func (f *SpecFlags) Add(cmd *cobra.Command, verb string) {
	f.Given = cmd.Flags().Changed
	cmd.Flags().BoolVar(&f.Cluster, "cluster", false, verb+" a ClusterPackage")
	cmd.Flags().StringVar(&f.Component, "component", "", "install this component of a package with several")
	cmd.Flags().StringVar(&f.Config, "config", "", "read the package's configuration from this YAML or JSON `file`, - for standard input")
	cmd.Flags().BoolVar(&f.Adopt, "adopt", false, "take over existing objects without a controller (spec.collisionProtection: IfNoController)")
}
