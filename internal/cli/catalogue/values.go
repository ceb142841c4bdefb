package catalogue

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type valuesCommand struct {
	command.Command
	cluster bool
}

func newValues(on command.Command) *cobra.Command {
	c := &valuesCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "values NAME[/VERSION]",
		Short: "Print an example of a package's values, with what is known of each",
		Long: `Print an example of the values of a package as YAML, made from its schema, with types, defaults and
descriptions as comments. Required values and those with defaults are set; the rest is commented out,
and passwords are empty. NAME is a package that a repository offers; for a folder or an image see
kubectl package inspect --values.`,
		Example: `  kubectl package values shop.example.com > shop.yaml
  kubectl package install shop.example.com --values shop.yaml`,
		Args:              command.Takes("NAME[/VERSION]"),
		ValidArgsFunction: c.CompleteAvailable,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, version, err := nameAndVersion(args[0])
			if err != nil {
				return command.UsageError(cmd, err)
			}
			schema, err := c.ofOffered(cmd.Context(), name, version)
			if err != nil {
				return err
			}
			return content.PrintExample(cmd.Context(), c.Streams, schema)
		},
	}
	c.Connects(cmd)
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "from the cluster's repositories alone, as for a ClusterPackage")
	return cmd
}

func (c *valuesCommand) ofOffered(ctx context.Context, name, version string) (*apiextensionsv1.JSONSchemaProps, error) {
	cl, err := c.Connect()
	if err != nil {
		return nil, err
	}
	v, err := offeredVersion(ctx, cl, map[bool]string{false: cl.Namespace}[c.cluster], name, version)
	if err != nil {
		return nil, err
	}
	switch {
	case v.ConfigUnchecked != "":
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: the values of "+name+" "+v.Version+" are not checked: "+v.ConfigUnchecked))
	case v.ConfigSchema == nil:
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: "+name+" "+v.Version+" states no schema of its values"))
	}
	schema, err := desired.SchemaOf(v.ConfigSchema)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s %s cannot be read: %w", name, v.Version, err)
	}
	return schema, nil
}

// offeredVersion reads one of the versions offered; the one that would be installed where
// version is empty.
func offeredVersion(ctx context.Context, cl *cluster.Cluster, namespace, name, version string) (*corev1alpha1.AvailableVersion, error) {
	choose := desired.ChooserFor(cl, namespace)
	if version == "" {
		found, newest, err := choose.Newest(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case len(found.Offered) == 0:
			return nil, choose.Unknown(ctx, name)
		}
		return &newest.Version, nil
	}
	found, err := choose.Choose(ctx, name, versions.Request{})
	if err != nil {
		return nil, err
	}
	if len(found.Offered) == 0 {
		return nil, choose.Unknown(ctx, name)
	}
	one, err := only(reportOf(found), version)
	if err != nil {
		return nil, err
	}
	return &one[0].AvailableVersion, nil
}
