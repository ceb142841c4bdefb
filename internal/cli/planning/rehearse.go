package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/version"
)

// rehearseCommand runs the packages of a cluster through the engine of this version.
type rehearseCommand struct {
	Planner
	cluster, loads bool
	// crds is a file with definitions, which are compared instead.
	crds string
}

// rehearseLong is the help.
const rehearseLong = `Run all packages of the cluster that you may read through the engine of this version, without
writing anything: before an upgrade of the engine, run this command of the new version.

Each package is loaded and validated as the manager of this version would, by the digest that is
installed, and what is installed is then reconciled by this version's engine on the live objects. What
it would write is sent to the API server as a dry run. Nothing should be found. What may be:

  LoadFails     the package does not load, or is not valid, with this version
  Refused       a write that is refused, or an object that this version would not take
  NotReady      an object that does not pass its probes with this version
  MissingRight  a right that the manager of this version needs, and its service account lacks
  NotServed     a kind that this version reads, and the cluster does not serve
  FieldPruned   a field of an object that the CustomResourceDefinitions of this version lack, which
                prune it where they replace those of the cluster
  FieldRefused  a value in an object that they refuse by a type, a bound or a rule: it stays where it
                is, and what changes or copies it, as a new revision may, is refused
  Written       objects, revisions and slices that would be written although the package is at rest
  Rendered      this version renders the package differently: its next load makes a revision
  NotRehearsed  what could not be found out, such as an image that you may not pull, or Packages
                that you may not read

Not rehearsed are statuses, and labels, annotations and finalizers of Packages and ObjectDeployments.

Without -n the packages of all namespaces and of the cluster are rehearsed. Those that are not at rest
are counted, and loaded alone. With -n and --cluster rights, kinds and definitions are not asked for. Dry runs need the rights of the writes: where you lack these, objects are compared instead.

Exits with 0 where nothing is found, and with 1 where anything is, or after an error.

What is paused, awaits an activation or was rejected stays so, and probes are evaluated. A package at rest
gives no line, others at most 20. ObjectDeployments without a package, ObjectTemplates and HostedClusterPackages
are not rehearsed. Rendered does not look at claims of other packages; where the manager has
--image-prefix-overrides or --registry-host-overrides, which the plugin does not know, it is found of packages
with such images. MissingRight and NotServed keep the new manager from becoming ready: apply the whole of
config, or roles and CRDs first.

Four packages are rehearsed at a time, each with at most 16 requests in flight: three requests for a package at
rest and one for each of its objects, three or four more where it follows a repository, two for each slice; 73
about the engine. Memory holds all Packages, and the content of four of them. After an interrupt it prints what
was found so far, and exits with 1. The image of the manager has the same command, lockstep-manager rehearse,
which reaches no loopback or link-local address, for a Job in the cluster with its account (docs/administrate/upgrade-engine.md#rehearse-in-the-cluster).

With --crds no package is rehearsed: the CustomResourceDefinitions in a file of another version are compared with those
of the cluster, before they replace these, as by kubectl apply, helm rollback or Package Operator. A policy of the engine
refuses each that lacks a field of the present one, also in statuses, which the former manager writes again. Where no
object has such a field outside of its status the command that permits it is printed: an annotation with the present
generation of the definition, so that it holds until the definition changes: permit it where you replace it at
once, and remove the annotation where you do not. The policy does not compare types, bounds and rules of fields, by
which nothing stored is lost: FieldRefused is about these. Every object of kinds whose definitions differ is read.

-o json prints version, rehearsed, atRest, notAtRest (numbers by state), notSeen[], notCovered, permits[] and
findings[]{kind, namespace, name, finding, phase, object, message}.`

func newRehearse(on command.Command) *cobra.Command {
	return (&rehearseCommand{Planner: Planner{Command: on}}).command()
}

func (c *rehearseCommand) command() *cobra.Command {
	c.Spec.Given = func(string) bool { return false }
	cmd := &cobra.Command{
		Use:   "rehearse",
		Short: "Show what the engine of this version would do to the packages of the cluster, before it is upgraded",
		Long:  rehearseLong,
		Example: `  # Before an upgrade of the engine, with the plugin of the new version
  kubectl package rehearse

  # With the rights of the manager, where you may impersonate it
  kubectl package rehearse --as system:serviceaccount:package-operator-system:lockstep-manager

  # Before helm rollback to revision 3
  helm get manifest lockstep -n package-operator-system --revision 3 | kubectl package rehearse --crds -

  # On a machine that reaches no registry
  kubectl package rehearse --load=false -o json`,
		Args:              command.Takes(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		err := c.Output.Check()
		one := cmd.Flags().Changed("namespace")
		switch {
		case c.cluster && one:
			err = cmp.Or(err, errors.New("--cluster selects what has no namespace: leave -n out"))
		case c.crds != "" && (c.cluster || one):
			err = cmp.Or(err, errors.New("--crds is about all objects of the cluster: leave --cluster and -n out"))
		}
		if err != nil {
			return command.UsageError(cmd, err)
		}
		return c.run(cmd.Context(), one)
	}
	c.Connects(cmd)
	c.Source.Registry.Add(cmd)
	c.Output.Add(cmd)
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "ClusterPackages alone")
	cmd.Flags().StringVar(&c.crds, "crds", "", "compare the CustomResourceDefinitions in this `file`, or - for standard input, with those of the cluster, and rehearse nothing else")
	cmd.Flags().BoolVar(&c.loads, "load", true, "load every package; without it no registry is asked, and what is installed is rehearsed alone")
	return cmd
}

// RunRehearse runs the command alone, for the manager, and returns its exit code.
func RunRehearse(ctx context.Context, args []string, on command.Command) int {
	c := &rehearseCommand{Planner: Planner{Command: on}}
	c.Source.Registry.InPod = true
	cmd := c.command()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetOut(on.Streams.Out)
	cmd.SetErr(on.Streams.ErrOut)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return command.UsageError(cmd, err) })
	err := cmd.ExecuteContext(logr.NewContext(ctx, logr.Discard()))
	return command.Exit(err, on.Streams.ErrOut)
}

func (c *rehearseCommand) run(ctx context.Context, oneNamespace bool) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	report := &rehearsalReport{Version: version.Get(), Findings: []finding{}}
	if c.crds != "" {
		return c.compareDefinitions(ctx, cl, report)
	}
	packages, err := c.packages(ctx, cl, oneNamespace, report)
	if err != nil {
		return err
	}
	all := packages
	if oneNamespace || c.cluster || len(report.NotSeen) > 0 {
		all = nil // packages elsewhere are not known
	}
	if c.shared, err = share(ctx, cl, all); err != nil {
		return cl.Explain("cannot rehearse", err)
	}
	if !oneNamespace && !c.cluster {
		if err := c.engine(ctx, cl, report); err != nil {
			return cl.Explain("cannot ask for the rights of the manager", err)
		}
	}
	c.each(ctx, cl, packages, report)
	err = c.print(ctx, report)
	if ctx.Err() != nil {
		err = fmt.Errorf("interrupted after %d of %s", report.Rehearsed, terminal.Count(len(packages), "package"))
	}
	return err
}

// compareDefinitions is the command with --crds.
func (c *rehearseCommand) compareDefinitions(ctx context.Context, cl *cluster.Cluster, report *rehearsalReport) error {
	others, err := c.readDefinitions()
	if err != nil {
		return err
	}
	report.definitions = len(others)
	if err := c.definitions(ctx, cl, others, report); err != nil {
		return cl.Explain("cannot compare the definitions", err)
	}
	return c.print(ctx, report)
}

// print ends with 1 where anything is found.
func (c *rehearseCommand) print(ctx context.Context, report *rehearsalReport) error {
	report.finish()
	err := c.Output.Write(c.Streams.Out, report, report.text)
	if err == nil && len(report.Findings) > 0 {
		err = command.ExitCode(1)
	}
	return err
}

// packages reads those that the flags select.
func (c *rehearseCommand) packages(ctx context.Context, cl *cluster.Cluster, oneNamespace bool, report *rehearsalReport) (found []corev1alpha1.GenericPackage, err error) {
	if !c.cluster {
		namespace := ""
		if oneNamespace {
			namespace = cl.Namespace
		}
		found, err = cl.PackagesOf(ctx, corev1alpha1.ScopeNamespaced, namespace)
		if apierrors.IsForbidden(err) && !oneNamespace {
			found, report.NotSeen, err = cl.PackagesByNamespace(ctx, err)
		}
		if err != nil || oneNamespace {
			return found, cl.Explain("cannot read the packages", err)
		}
	}
	ofCluster, err := cl.PackagesOf(ctx, corev1alpha1.ScopeCluster, "")
	if apierrors.IsForbidden(err) && !c.cluster {
		report.NotSeen = append(report.NotSeen, "ClusterPackages")
		return found, nil
	}
	return append(found, ofCluster...), cl.Explain("cannot read the clusterpackages", err)
}

// each rehearses the packages, a few at a time, until the context ends.
func (c *rehearseCommand) each(ctx context.Context, cl *cluster.Cluster, packages []corev1alpha1.GenericPackage, report *rehearsalReport) {
	var mu sync.Mutex
	workqueue.ParallelizeUntil(ctx, limits.RehearsedAtOnce, len(packages), func(i int) {
		found, rested := c.one(ctx, cl, packages[i])
		if ctx.Err() != nil {
			return // which requests it ended is not known
		}
		mu.Lock()
		defer mu.Unlock()
		report.add(packages[i], found, rested)
	})
}
