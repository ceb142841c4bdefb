package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/engines"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// engineCommand is shared by adopt-engine and release-engine.
type engineCommand struct {
	command.Command
	dryRun  bool
	cluster *cluster.Cluster

	// client reads and writes all kinds.
	client client.Client
	// lease is the resourceVersion of the Lease, and leaseSince is the time when it was first seen.
	lease      string
	leaseSince time.Time
}

// engineStep is done if its outcome exists already. Each step can be repeated, as can an
// interrupted command.
type engineStep struct {
	what string
	done bool
	do   func(context.Context) error
}

// engineFinding is a remark of a plan.
type engineFinding struct{ about, text string }

// complete adds the flags that both commands share, and connects before the run.
func (c *engineCommand) complete(cmd *cobra.Command, run func(context.Context) error) *cobra.Command {
	cmd.Args = command.Takes()
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if c.cluster, err = c.Connect(); err != nil {
			return err
		}
		if c.client, err = c.cluster.AnyKind(); err != nil {
			return err
		}
		return run(cmd.Context())
	}

	c.Connects(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show the plan without changing anything")
	c.AddYes(cmd)
	c.AddTimeout(cmd, engineTimeout, "how long to wait for a manager to stop")
	c.Reports(cmd)
	return cmd
}

// engineTimeout is longer than the Lease of Package Operator, 137 s.
const engineTimeout = 4 * time.Minute

// show prints findings and steps.
func (c *engineCommand) show(title string, findings []engineFinding, steps []engineStep) error {
	// A dry run's output is the plan. Otherwise, it is a message before the question.
	out := c.Streams.ErrOut
	if c.dryRun {
		out = c.Streams.Out
	}
	styles := terminal.StylesFor(out)

	t := terminal.Writer{Styles: styles}
	t.Line(styles.Strong(title))
	var rows [][]string
	for _, f := range findings {
		rows = append(rows, []string{"  " + terminal.Line(f.about), terminal.Line(f.text)})
	}

	t.Rows("", rows)
	t.Line("")
	t.Line(styles.Strong("Steps"))
	for _, s := range steps {
		if s.done {
			t.Line("  · " + terminal.Line(s.what) + ": done")
		} else {
			t.Line("  " + styles.Busy(">") + " " + terminal.Line(s.what))
		}
	}

	t.Line("")
	_, err := fmt.Fprint(out, t.String())
	return err
}

// perform runs the remaining steps after a confirmation. It returns false after a dry run or an
// error.
func (c *engineCommand) perform(ctx context.Context, question string, steps []engineStep) (bool, error) {
	left := 0
	for _, s := range steps {
		if !s.done {
			left++
		}
	}

	switch {
	case c.dryRun:
		return false, nil
	case left == 0:
		fmt.Fprintln(c.Streams.Out, "nothing to do")
		return true, nil
	}

	if err := c.Confirm(question); err != nil {
		return false, err
	}

	for _, s := range steps {
		if s.done {
			continue
		}
		// Steps can be repeated, so an error does not undo the completed ones.
		if err := s.do(ctx); err != nil {
			return false, fmt.Errorf("%s: %w. Completed steps stay; run the same command again to continue", s.what, err)
		}
		fmt.Fprintln(c.Streams.Out, terminal.Line(s.what)+": done")
	}

	return true, nil
}

// leader returns the holder of the Lease that both engines lead by; empty if no process does.
func (c *engineCommand) leader(ctx context.Context) (string, error) {
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}
	err := c.cluster.Get(ctx, key, &lease)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", c.cluster.Explain("cannot read the Lease "+key.String(), err)
	}

	// The clocks of this machine and of the holder can differ. So the Lease counts from the time
	// when its current version was first seen, as in client-go's leader election.
	if c.lease != lease.ResourceVersion {
		c.lease, c.leaseSince = lease.ResourceVersion, c.cluster.Now()
	}
	return engines.Holder(&lease, c.leaseSince, c.cluster.Now()), nil
}

// awaitLease waits until no process leads.
func (c *engineCommand) awaitLease(ctx context.Context) error {
	holder := ""
	err := c.Poll(ctx, func(context.Context) (_ bool, err error) {
		holder, err = c.leader(ctx) // a request has more time than the rest of the wait
		return holder == "", err
	})
	if errors.Is(err, command.ErrTimeout) {
		return fmt.Errorf("%s still holds the Lease after %s: stop it", holder, c.Timeout)
	}

	return err
}

// others refuses a cluster if an engine runs elsewhere, because it would lead by its own Lease at
// the same time as this one.
func (c *engineCommand) others(ctx context.Context) error {
	// A field selector makes the API server return only objects of this name, in all namespaces.
	named := func(name string) client.MatchingFields { return client.MatchingFields{"metadata.name": name} }
	leases := &coordinationv1.LeaseList{}
	if err := c.cluster.List(ctx, leases, named(corev1alpha1.LeaderElectionLease)); err != nil {
		return c.cluster.Explain("cannot search for engines in other namespaces", err)
	}
	var deployments []appsv1.Deployment
	for _, name := range []string{formerDeployment, engineDeployment} {
		found := &appsv1.DeploymentList{}
		if err := c.client.List(ctx, found, named(name)); err != nil {
			return c.cluster.Explain("cannot search for engines in other namespaces", err)
		}
		deployments = append(deployments, found.Items...)
	}

	jobs := &unstructured.UnstructuredList{}
	jobs.SetAPIVersion("batch/v1")
	jobs.SetKind("JobList")
	if err := c.client.List(ctx, jobs, named(formerBootstrap)); err != nil {
		return c.cluster.Explain("cannot search for the bootstrap of Package Operator", err)
	}
	if why := engines.Elsewhere(leases.Items, deployments, jobs.Items, c.cluster.Now()); len(why) > 0 {
		return fmt.Errorf("nothing was changed: %s", strings.Join(why, "; "))
	}

	return nil
}

// leaseFinding names the holder of the Lease.
func leaseFinding(holder string) engineFinding {
	if holder == "" {
		return engineFinding{"Lease", "not held"}
	}
	return engineFinding{"Lease", "held by " + holder}
}

// leaseStep waits for the Lease.
func (c *engineCommand) leaseStep(holder string) engineStep {
	return engineStep{
		what: "wait for the release of the Lease " + corev1alpha1.DefaultNamespace + "/" + corev1alpha1.LeaderElectionLease,
		done: holder == "", do: c.awaitLease,
	}
}

// manager returns the Deployment with a name that runs a manager; nil if there is none.
func (c *engineCommand) manager(ctx context.Context, name string) (*appsv1.Deployment, error) {
	dep := &appsv1.Deployment{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: corev1alpha1.DefaultNamespace, Name: name}, dep)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return dep, c.cluster.Explain("cannot read the Deployment "+name, err)
}

// stopStep scales a manager down.
func (c *engineCommand) stopStep(dep *appsv1.Deployment) engineStep {
	return engineStep{
		what: fmt.Sprintf("stop Deployment %s/%s: %d → 0 replicas", dep.Namespace, dep.Name, ptr.Deref(dep.Spec.Replicas, 1)),
		done: ptr.Deref(dep.Spec.Replicas, 1) == 0,
		do: func(ctx context.Context) error {
			// The UID makes the API server refuse the patch for a recreated Deployment.
			patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"replicas":0}}`, dep.UID)
			return client.IgnoreNotFound(c.client.Patch(ctx, dep.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(command.FieldManager)))
		},
	}
}

// patch sends a patch of metadata. A deleted object needs none.
func (c *engineCommand) patch(ctx context.Context, p engines.Patch, manager string) error {
	obj := p.Of.(client.Object).DeepCopyObject().(client.Object)
	err := c.client.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, p.JSON), client.FieldOwner(manager))
	return c.cluster.Explain("cannot change "+p.Of.GetName(), client.IgnoreNotFound(err))
}
