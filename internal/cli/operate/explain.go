package operate

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/describe"
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type explainCommand struct {
	command.Command
	source  content.SourceFlags
	preview author.PreviewFlags
}

func newExplain(on command.Command) *cobra.Command {
	c := &explainCommand{Command: on, preview: author.PreviewFlags{Locked: true}}
	cmd := &cobra.Command{
		Use:   "explain NAME|SOURCE|IMAGE",
		Short: "Say why an installed package is not available, or what a package is",
		Long: `Say why an installed package is not available, and what to do about it: from the package down to
the pod, the event or the refusal that explains it. Where it waits for packages that it depends
on, these are explained in turn. NAME is the name of a Package in the
namespace or of a ClusterPackage, or package/NAME or clusterpackage/NAME. Exits with 0 whenever
the package exists, however it stands.

Or say what a package in a folder or an image is, without a cluster: its phases and objects and
what is waited for, its configuration as a table, its images, its constraints, the rights that
it gives to others and those that its installation takes. For which installation, --config
and the flags beside it say as with render.`,
		Example: `  kubectl package explain clusterpackage/cert-operator
  kubectl package explain ./cert-operator
  kubectl package explain registry.example.com/cert-operator:v1.2.0 --query .needs -o yaml`,
		Args:              command.Takes("NAME|SOURCE|IMAGE"),
		ValidArgsFunction: c.CompleteSource(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	c.Connects(cmd)
	c.source.Add(cmd)
	c.preview.AddBesideConnection(cmd)
	c.Output.Add(cmd)
	return cmd
}

func (c *explainCommand) run(cmd *cobra.Command, arg string) error {
	c.preview.Namespace = *c.Flags.Namespace
	err := cmp.Or(c.Output.Check(), c.preview.Check())
	n, installed := installedName(arg)
	if installed = installed && !c.source.Pull; installed && err == nil {
		err = c.preview.OnlyForSource(cmd, arg)
		if c.preview.Cluster && n.Scope == corev1alpha1.ScopeNamespaced {
			err = cmp.Or(err, fmt.Errorf("%s and --cluster contradict each other", arg))
		}
	}
	if err != nil {
		return command.UsageError(cmd, err)
	}
	if !installed {
		if content.BareName(arg) && !c.source.Pull {
			fmt.Fprintf(c.Streams.ErrOut, "note: this is about the folder %[1]s; of an installed package: kubectl package explain package/%[1]s or clusterpackage/%[1]s\n", arg)
		}
		return c.describe(cmd.Context(), arg)
	}
	if c.preview.Cluster {
		n.Scope = corev1alpha1.ScopeCluster
	}
	return c.diagnose(cmd.Context(), n)
}

// installedName reports whether an argument names an installed package: with its kind, or as a
// bare name that is neither a folder with a package nor an image.
func installedName(arg string) (cluster.Name, bool) {
	if content.IsPath(arg) && (!content.BareName(arg) || content.HasManifest(arg)) {
		return cluster.Name{}, false
	}
	n, err := cluster.ParseName(arg)
	return n, err == nil && (n.Scope != "" || !strings.ContainsAny(arg, ":@"))
}

func (c *explainCommand) diagnose(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.Find(ctx, n)
	if err != nil {
		return err
	}
	snap, deployment, err := cl.Snapshot(ctx, target, pkg)
	if err != nil {
		return err
	}
	all, err := cl.AnyKind()
	if err != nil {
		return err
	}
	d, err := diagnose.Explain(ctx, all, snap, deployment, readerOf(cl), func(pkg corev1alpha1.GenericPackage) (client.Client, error) {
		return cl.AnyKindAt(ctx, pkg.GetNamespace(), pkg.PackageSpec().TargetRef)
	})
	if err != nil {
		return cl.Explain("cannot explain "+target.String(), err)
	}
	if d.Reason == diagnose.ReasonPackage && progress.Unreported(progress.Of(snap)) {
		if delay := cl.Delay(ctx); delay != "" {
			d.Cause += "; " + delay
		}
	}
	c.WarnOfSilence(ctx, cl)
	return c.Output.Write(ctx, c.Streams.Out, d, func(styles terminal.Styles) string { return diagnosisText(target.String(), d, styles) })
}

// readerOf reads packages that others depend on, as far as the user may.
func readerOf(cl *cluster.Cluster) diagnose.Reader {
	return func(ctx context.Context, t progress.Target) (progress.Snapshot, corev1alpha1.GenericObjectDeployment, error) {
		pkg, err := cl.Read(ctx, t)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return progress.Snapshot{Target: t}, nil, nil
		}
		if err != nil {
			return progress.Snapshot{}, nil, cl.Explain("cannot read "+t.String(), err)
		}
		return cl.Snapshot(ctx, t, pkg)
	}
}

func (c *explainCommand) describe(ctx context.Context, source string) error {
	files, err := c.source.Read(ctx, source)
	if err != nil {
		return err
	}
	pkg, _, err := c.preview.Load(ctx, c.Streams, source, files)
	if err != nil {
		return err
	}
	report, err := describe.Of(pkg, c.preview.Component, content.ComponentsOf(files))
	if err != nil {
		return err
	}
	return c.Output.Write(ctx, c.Streams.Out, report, func(styles terminal.Styles) string {
		return describe.Text(report, styles, terminal.WidthOf(c.Streams.Out))
	})
}

func diagnosisText(name string, d *diagnose.Diagnosis, styles terminal.Styles) string {
	var b strings.Builder
	line := func(text string) { b.WriteString(strings.TrimRight(text, " ") + "\n") }
	if d.Reason == diagnose.ReasonNone {
		line(styles.Strong(terminal.Line(name)) + ": " + styles.Good(d.Summary.Words()) + ", " + terminal.Line(d.Cause))
		return b.String()
	}
	head := styles.Strong(terminal.Line(name)) + ": " + styles.Bad(d.Summary.Words())
	if d.Phase != "" {
		head += ", phase " + terminal.Line(d.Phase) + " waits"
	}
	line(head)
	line("Cause  " + terminal.Line(d.Cause))
	if d.Remedy != "" {
		line("Do     " + terminal.Line(d.Remedy))
	}
	line("")
	for _, link := range d.Chain {
		text := strings.Repeat("  ", link.Depth) + terminal.Line(link.Object)
		if link.State != "" {
			text += "  " + styles.Busy(terminal.Line(link.State))
		}
		if link.Message != "" {
			text += "  " + terminal.Line(link.Message)
		}
		line(text)
	}
	return b.String()
}
