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
	cmd.Flags().StringVar(&f.Component, "component", "", "the component to install of a package that has several")
	cmd.Flags().StringVar(&f.Config, "config", "", "YAML or JSON `file` with the package's configuration, - for standard input")
	cmd.Flags().BoolVar(&f.Adopt, "adopt", false, "take over objects that exist already and that nothing controls (spec.collisionProtection: IfNoController)")
}
