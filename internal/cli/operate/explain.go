package operate

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type explainCommand struct {
	command.Command
	cluster bool
}

func newExplain(on command.Command) *cobra.Command {
	c := &explainCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say why an installed package is not available, and what to do about it",
		Long: `Say why an installed package is not available, and what to do about it: from the package down to
the pod, the event or the refusal that explains it. Where it waits for packages that it depends
on, these are explained in turn. NAME is the name of a Package in the
namespace or of a ClusterPackage, or package/NAME or clusterpackage/NAME. Exits with 0 whenever
the package exists, however it stands.

What a package in a folder or an image is says kubectl package inspect.

The cause and what to do come first, then the way to it. It follows what the status names as blocking:

- a write that was refused: by a webhook or an admission policy, a quota, missing rights, a field that cannot be changed, an object of another owner;
- what a write lacks: a webhook that cannot be called, a missing namespace, an unavailable APIService;
- workloads: the newest ReplicaSet, pods that are not ready, their containers, and warnings in Events: images, crashes with the exit code, scheduling, volumes, probes, quotas;
- Services of type LoadBalancer without an address, definitions, claims, Jobs and all other kinds: their conditions and Events. Jobs that succeeded are named at the deployment;
- dependencies that are not available, or that cannot be installed;
- a package that cannot be pulled, is invalid or paused (and why), or that no manager has looked at.

It reads only, with your rights; what you may not read is left out. A name that is also a folder with a package
means the folder, with a note; package/NAME and clusterpackage/NAME never do.

-o json prints kind, namespace, name, summary (as status), phase, object, reason, cause, remedy and chain[]{depth,
object, state, message}. reason is one of None, Package, Target, Collision, Webhook, WebhookFailed, Quota, Forbidden,
Immutable, Refused, Unserved, NoNamespace, APIService, NoAddress, NotEstablished, ImagePull, Crash, Container,
Unschedulable, NotReady, OutdatedPod, Volume, Job, Deleting, Condition, Probe, Dependency, Gate (a phase waits for what a later
one brings, or for a status that may never be set), Unanswered (the API server does not answer in time).`,
		Example: `  kubectl package explain clusterpackage/cert-operator`,
		Args:    command.Takes("NAME"),
	}
	c.About(cmd, c.name, c.diagnose)
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "a ClusterPackage")
	c.Output.Add(cmd)
	return cmd
}

func (c *explainCommand) name(args []string) (cluster.Name, error) {
	n, err := cluster.ParseName(args[0])
	if err != nil {
		return n, err
	}
	return scoped(n, args[0], c.cluster)
}

// scoped adds the scope of --cluster to the name of arg.
func scoped(n cluster.Name, arg string, ofCluster bool) (cluster.Name, error) {
	if ofCluster && n.Scope == corev1alpha1.ScopeNamespaced {
		return n, fmt.Errorf("%s and --cluster contradict each other", arg)
	}
	if ofCluster {
		n.Scope = corev1alpha1.ScopeCluster
	}
	return n, nil
}

func (c *explainCommand) diagnose(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.Find(ctx, n)
	if err != nil {
		return err
	}
	d, err := diagnose.Package(ctx, cl, target, pkg)
	if err != nil {
		return err
	}
	c.WarnOfSilence(ctx, cl)
	return c.Output.Write(c.Streams.Out, d, func(styles terminal.Styles) string { return diagnosisText(target.String(), d, styles) })
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
