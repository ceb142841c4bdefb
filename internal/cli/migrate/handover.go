package migrate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/planning"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

// handoverCommand is shared by adopt and release.
type handoverCommand struct {
	command.Command
	source content.SourceFlags
	dryRun bool
}

// add adds the flags that both commands share. usage describes --wait.
func (c *handoverCommand) add(cmd *cobra.Command, usage string) {
	c.Connects(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show the plan without changing anything")
	c.AddYes(cmd)
	c.source.Registry.Add(cmd)
	c.AddWait(cmd, command.WaitTimeout, usage)
}

// handoverPlan is a package with the objects to adopt or release.
type handoverPlan struct {
	*planning.Planned
	cluster *cluster.Cluster
	objects []object
	plan    *dryrun.Plan

	// deployment is the UID of the package's deployment; empty if there is none.
	deployment types.UID
	// others are further steps to show along with the steps of objects. notes are printed below
	// them.
	others []step
	notes  []string
}

// read reads the named objects.
func (c *handoverCommand) read(ctx context.Context, names []cluster.ObjectName) (*handoverPlan, error) {
	cl, err := c.Connect()
	if err != nil {
		return nil, err
	}
	h := &handoverPlan{cluster: cl, Planned: &planning.Planned{}}
	if h.Client, err = cl.AnyKind(); err != nil {
		return nil, err
	}

	all, err := cl.ReadNamed(ctx, h.Client, names)
	for _, u := range all {
		h.objects = append(h.objects, object{Key: objectdiff.KeyOf(u.Object, ""), Live: u})
	}
	return h, err
}

// load reads the package, and renders it after a change of its spec. The change is not written. It
// returns an error if no object of the package is rolled out.
func (c *handoverCommand) load(ctx context.Context, h *handoverPlan, name cluster.Name, edit func(progress.Target, *corev1alpha1.PackageSpec) error) error {
	// Flags of a spec are never given: only edit changes it.
	loads := planning.Planner{Command: c.Command, Source: c.source, Spec: desired.SpecFlags{Given: func(string) bool { return false }}}
	loaded, err := loads.Load(ctx, h.cluster, planning.Wanted{Name: name, Edit: edit})
	if err != nil {
		return content.Reported(c.Streams, err, loaded.Target.String()+" would not be rolled out: %s")
	}
	h.Planned = loaded
	switch {
	case h.Remote != nil:
		return fmt.Errorf("%s is installed in another cluster by its spec.targetRef, where single objects cannot be adopted or released. To take over objects without a controller there, set spec.collisionProtection: IfNoController", h.Target)
	case h.Before.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is being deleted", h.Target)
	case h.Before.PackageSpec().Paused && !c.dryRun:
		return fmt.Errorf("%s is paused, so it does not change. To resume it: kubectl package unpause %s", h.Target, h.Target.Flags())
	}

	return nil
}

// make plans the loaded package as if the objects had an annotation. No object is annotated before
// the user has seen the plan.
func (h *handoverPlan) make(ctx context.Context, annotation, value string) error {
	doing := "cannot plan " + h.Target.String()
	at, err := h.Preview(h.cluster)
	if err != nil {
		return h.cluster.Explain(doing, err)
	}

	request := h.Request()
	request.Annotations = map[objects.Key]map[string]string{}
	for _, o := range h.objects {
		request.Annotations[o.Key] = map[string]string{annotation: value}
	}

	if h.plan, err = dryrun.Make(ctx, at, request); err != nil {
		return h.cluster.Explain(doing, err)
	}
	h.Complete(h.plan)

	dep := h.Target.Scope.NewObjectDeployment()
	err = h.cluster.Get(ctx, client.ObjectKey{Namespace: h.Target.Namespace, Name: h.Target.Name}, dep)
	if client.IgnoreNotFound(err) != nil {
		return h.cluster.Explain("cannot read the deployment of "+h.Target.String(), err)
	}

	h.deployment = dep.GetUID()
	return nil
}

// phases returns the phases of the package's objects.
func (h *handoverPlan) phases() (map[objects.Key]string, error) {
	phases := map[objects.Key]string{}
	err := h.each(func(phase string, key objects.Key, _ map[string]any) { phases[key] = phase })
	return phases, err
}

// each calls visit for the package's objects.
func (h *handoverPlan) each(visit func(phase string, key objects.Key, value map[string]any)) error {
	// Values of Secrets can be in an object, so an error does not quote it.
	for _, phase := range h.Loaded.Template().Phases {
		for _, o := range phase.Objects {
			var value map[string]any
			if err := json.Unmarshal(o.Object.Raw, &value); err != nil {
				return fmt.Errorf("an object in phase %s cannot be read", phase.Name)
			}
			visit(phase.Name, objectdiff.KeyOf(value, h.Target.Namespace), value)
		}
	}
	return nil
}

// show prints the plan. It returns an error if the plan is refused.
func (c *handoverCommand) show(h *handoverPlan, title string, steps []step) error {
	out := c.Streams.ErrOut
	if c.dryRun {
		out = c.Streams.Out
	}

	styles := terminal.StylesFor(out)
	t := terminal.Writer{Styles: styles}
	t.Line(styles.Strong(title))
	refused := 0
	for _, s := range slices.Concat(steps, h.others) {
		name := terminal.Line(s.Key.String())
		switch {
		case s.Refusal != "":
			refused++
			t.Line("  " + styles.Bad("✗") + " " + name)
			t.Line("      " + terminal.Line(objects.Truncate(s.Refusal)))
		case s.Done:
			t.Line("  · " + name + "  " + terminal.Line(cmp.Or(s.Note, "nothing to do")))
		default:
			t.Line("  " + styles.Busy("<") + " " + name)
		}
	}

	for _, note := range h.notes {
		t.Line(terminal.Line(note))
	}

	t.Line("")
	if _, err := fmt.Fprint(out, t.String(), planning.Text(h.plan, styles)); err != nil {
		return err
	}

	if refused > 0 {
		return fmt.Errorf("nothing was changed: %s of %d refused", terminal.Count(refused, "object"), len(steps))
	}
	if n := len(h.plan.Refusals); n > 0 {
		return fmt.Errorf("nothing was changed: %s would not be rolled out: %s", h.Target, terminal.Count(n, "refusal"))
	}

	return nil
}

// pending returns the steps that are not done.
func pending(steps []step) []step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return s.Done })
}

// annotate sets an annotation of an object, or removes it for nil, unless the object was replaced
// since it was read. If the object no longer exists, the removal is complete.
func (h *handoverPlan) annotate(ctx context.Context, o object, annotation string, value any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.Live.GetUID(), "annotations": map[string]any{annotation: value}},
	})
	if err != nil {
		return err
	}
	err = h.Client.Patch(ctx, o.Live.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(corev1alpha1.HandoverFieldManager))
	switch {
	case value == nil && apierrors.IsNotFound(err):
		return nil
	// The API server refuses a patch that names another UID.
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsInvalid(err):
		return fmt.Errorf("%s was replaced or deleted in the meantime: %w", o.Key, err)
	}

	return h.cluster.Explain("cannot annotate "+o.Key.String(), err)
}

// follow watches the rollout, and waits until the controller of each object is as wanted. does and
// done are words for the change. It runs end, and reports the outcome.
func (c *handoverCommand) follow(
	ctx context.Context, h *handoverPlan, a desired.Applied, steps []step, does, done string, is func(*metav1.OwnerReference) bool, end func() error,
) error {
	count := terminal.Count(len(steps), "object")
	if !c.Wait {
		fmt.Fprintln(c.Streams.Out, terminal.Line(h.Target.String()+" "+does+" "+count))
		return nil
	}
	if err := a.Follow(ctx, &c.Command, h.cluster, h.Target); err != nil {
		return err
	}

	var left []string
	err := c.Poll(ctx, func(ctx context.Context) (bool, error) {
		// The list is kept for the message after a timeout.
		left = nil
		for _, s := range steps {
			u := s.Live.DeepCopy()
			err := h.Client.Get(ctx, client.ObjectKeyFromObject(u), u)
			switch {
			case apierrors.IsNotFound(err):
				return false, fmt.Errorf("%s was deleted in the meantime", s.Key)
			case err != nil:
				return false, h.cluster.Explain("cannot read "+s.Key.String(), err)
			case !is(metav1.GetControllerOf(u)):
				left = append(left, s.Key.String())
			}
		}

		return len(left) == 0, nil
	})
	if errors.Is(err, command.ErrTimeout) {
		return fmt.Errorf("not %s after %s: %s. The engine continues; see: kubectl package explain %s",
			done, c.Timeout, strings.Join(left[:min(len(left), command.MostNamed)], ", "), h.Target.Flags())
	}

	if err == nil {
		err = end()
	}
	if err == nil {
		fmt.Fprintln(c.Streams.Out, terminal.Line(h.Target.String()+" has "+done+" "+count))
	}
	return err
}
