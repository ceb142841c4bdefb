package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/output"
)

type explainCommand struct {
	streams    genericiooptions.IOStreams
	connection *connection
	source     sourceFlags
	preview    previewFlags
	output     output.Flags
}

func newExplain(streams genericiooptions.IOStreams, dial dialer) *cobra.Command {
	c := explainCommand{streams: streams}
	c.preview.locked = true
	cmd := &cobra.Command{
		Use:   "explain NAME|SOURCE|IMAGE",
		Short: "Say why an installed package is not available, or what a package is",
		Long: `Say why an installed package is not available, and what to do about it: from the package down to
the pod, the event or the refusal that explains it. NAME is the name of a Package in the
namespace or of a ClusterPackage, or package/NAME or clusterpackage/NAME. Exits with 0 whenever
the package exists, however it stands.

Or say what a package in a folder or an image is, without a cluster: its phases and objects and
what is waited for, its configuration as a table, its images, its constraints, the rights that
it gives to others and those that its installation takes. For which installation, --config
and the flags beside it say as with render.`,
		Example: `  kubectl package explain clusterpackage/cert-operator
  kubectl package explain ./cert-operator
  kubectl package explain registry.example.com/cert-operator:v1.2.0 --query .needs -o yaml`,
		Args: takes("NAME|SOURCE|IMAGE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.preview.namespace = *c.connection.flags.Namespace
			if err := cmp.Or(c.output.Check(), c.preview.check()); err != nil {
				return usageError(cmd, err)
			}
			if n, installed := installedName(args[0]); installed && !c.source.pull {
				if err := c.preview.onlyForSource(cmd, args[0]); err != nil {
					return usageError(cmd, err)
				}
				if c.preview.cluster && n.Scope == corev1alpha1.ScopeNamespaced {
					return usageError(cmd, fmt.Errorf("%s and --cluster contradict each other", args[0]))
				}
				if c.preview.cluster {
					n.Scope = corev1alpha1.ScopeCluster
				}
				return explainInstalled(cmd.Context(), c.streams, c.connection, &c.output, n)
			}
			if bareName(args[0]) && !c.source.pull {
				fmt.Fprintf(streams.ErrOut, "note: this is about the folder %[1]s; of an installed package: kubectl package explain package/%[1]s or clusterpackage/%[1]s\n", args[0])
			}
			return explainPackage(cmd.Context(), c.streams, c.source, &c.preview, &c.output, args[0])
		},
	}
	c.connection = newConnection(cmd, streams, dial)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		names, end := c.connection.completeNames(cmd, args, begin)
		if len(args) == 0 {
			end = cobra.ShellCompDirectiveDefault // folders, too
		}
		return names, end
	}
	c.source.add(cmd)
	c.preview.addBesideConnection(cmd)
	c.output.Add(cmd)
	return cmd
}
