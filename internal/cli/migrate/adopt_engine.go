package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/engines"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// adoptEngineCommand is kubectl package adopt-engine.
type adoptEngineCommand struct {
	engineCommand
}

// newAdoptEngine returns the command adopt-engine.
func newAdoptEngine(on command.Command) *cobra.Command {
	c := &adoptEngineCommand{engineCommand: engineCommand{Command: on}}
	return c.complete(&cobra.Command{
		Use:   "adopt-engine",
		Short: "Take a cluster over from Package Operator, with all of its packages (single objects: adopt)",
		Long: `Make this engine take over a cluster from Package Operator. No object of its packages is deleted,
recreated or restarted. Package Operator is stopped, and its own ClusterPackage is removed without its
objects. The plan comes first. Afterwards install this engine.

The command can be repeated, also after an interrupt. It is refused while an engine leads in another
namespace. The way back is release-engine; the guide is docs/migrate-from-package-operator.md.`,
		Example: `  kubectl package adopt-engine --dry-run
  kubectl package adopt-engine --yes`,
	}, c.run)
}

// formerDeployment is the name of the Deployment of Package Operator's manager.
const formerDeployment = "package-operator-manager"

// formerBootstrap is the name of the Job that installs Package Operator and leads without the
// Lease.
const formerBootstrap = "package-operator-bootstrap"

// former has the objects of Package Operator.
type former struct {
	holder  string
	manager *appsv1.Deployment
	own     ownPackage
	// ours is our manager; nil if it is not installed.
	ours *appsv1.Deployment
}

// run reads both engines, shows the plan, and runs the steps after a confirmation.
func (c *adoptEngineCommand) run(ctx context.Context) error {
	var found former
	var err error
	if found.holder, err = c.leader(ctx); err != nil {
		return err
	}
	if found.manager, err = c.manager(ctx, formerDeployment); err != nil {
		return err
	}
	if found.ours, err = c.manager(ctx, engineDeployment); err != nil {
		return err
	}
	if found.own, err = c.readOwn(ctx); err != nil {
		return err
	}

	steps := c.steps(found)
	// The plan is shown even if the adoption is not possible, because it explains the reason.
	if err := c.show("Package Operator", found.findings(), steps); err != nil {
		return err
	}
	if err := cmp.Or(found.possible(), c.others(ctx)); err != nil {
		return err
	}
	done, err := c.perform(ctx, "Take the cluster over?", steps)
	if !done || err != nil {
		return err
	}

	if found.ours == nil {
		fmt.Fprintln(c.Streams.Out, "Now install this engine: kubectl apply --server-side --force-conflicts -k config")
	}
	if found.manager != nil {
		fmt.Fprintf(c.Streams.Out, "Deployment %s stays with 0 replicas, for the way back: kubectl package release-engine\n", formerDeployment)
	}

	return nil
}

// possible returns an error if this engine would reconcile Package Operator's own package, because
// it could delete the CustomResourceDefinitions along with it.
func (f *former) possible() error {
	switch {
	case f.own.empty():
		return nil
	case f.ours != nil && ptr.Deref(f.ours.Spec.Replicas, 1) > 0:
		return fmt.Errorf("nothing was changed: this engine already runs, although Package Operator's own package exists. Stop it: kubectl -n %s scale deployment %s --replicas=0",
			f.ours.Namespace, f.ours.Name)
	case f.holder != "" && !strings.HasPrefix(f.holder, formerDeployment):
		return fmt.Errorf("nothing was changed: %s leads and is not the manager of Package Operator's own package: stop it", f.holder)
	}
	return nil
}

// findings are the lines of the plan about Package Operator.
func (f *former) findings() (all []engineFinding) {
	all = append(all, leaseFinding(f.holder))
	if f.manager == nil {
		all = append(all, engineFinding{"Deployment " + formerDeployment, "not found"})
	} else {
		all = append(all, engineFinding{"Deployment " + formerDeployment, terminal.Count(int(ptr.Deref(f.manager.Spec.Replicas, 1)), "replica")})
	}

	return append(all, f.own.findings()...)
}

// steps returns the steps in their order: Package Operator has to be quiet before its own package
// is removed.
func (c *adoptEngineCommand) steps(f former) []engineStep {
	steps := []engineStep{{
		what: "pause ClusterPackage " + corev1alpha1.EnginePackage, done: f.own.pkg == nil || f.own.pkg.Spec.Paused && (f.holder == "" || f.own.paused()),
		do: func(ctx context.Context) error {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`))
			// Package Operator would start its manager again from an active package.
			if err := c.client.Patch(ctx, f.own.pkg.DeepCopy(), patch, client.FieldOwner(command.FieldManager)); err != nil {
				return client.IgnoreNotFound(err)
			}
			return c.awaitPaused(ctx)
		},
	}}
	if f.manager != nil {
		steps = append(steps, c.stopStep(f.manager))
	}
	lease := c.leaseStep(f.holder)
	// The Lease of our own running manager needs no wait.
	lease.done = lease.done || f.ours != nil && strings.HasPrefix(f.holder, engineDeployment)
	return append(steps, lease, engineStep{
		what: fmt.Sprintf("remove %s from ClusterPackage %s without deleting them", terminal.Count(len(f.own.owned), "object"), corev1alpha1.EnginePackage),
		done: len(f.own.owned) == 0, do: c.disown,
	}, engineStep{
		what: fmt.Sprintf("delete ClusterPackage %s and the %s that it consists of", corev1alpha1.EnginePackage, terminal.Count(len(f.own.parts), "object")),
		done: f.own.empty(), do: c.deleteOwn,
	})
}

// disown removes the objects from Package Operator's own package.
func (c *adoptEngineCommand) disown(ctx context.Context) error {
	own, err := c.readQuietOwn(ctx)
	if err != nil {
		return err
	}

	uids := sets.New[types.UID]()
	for _, part := range own.parts {
		uids.Insert(part.GetUID())
	}
	for _, obj := range own.owned {
		p, err := engines.Disown(obj, uids)
		if p != nil {
			err = c.patch(ctx, *p, command.FieldManager)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// deleteOwn deletes Package Operator's own package once it owns no objects.
func (c *adoptEngineCommand) deleteOwn(ctx context.Context) error {
	own, err := c.readQuietOwn(ctx)
	if err != nil {
		return err
	}
	// The garbage collector would delete these objects along with the package.
	if n := len(own.owned); n > 0 {
		return fmt.Errorf("%s of it would be deleted: %s", terminal.Count(n, "object"), own.owned[0].GetName())
	}

	for _, part := range own.parts {
		doing := "cannot delete " + part.GetName()
		// Dependents are orphaned, so that unknown objects stay, too.
		if part.GetDeletionTimestamp() == nil {
			err := c.client.Delete(ctx, part, client.Preconditions{UID: ptr.To(part.GetUID())}, client.PropagationPolicy("Orphan"))
			if client.IgnoreNotFound(err) != nil {
				return c.cluster.Explain(doing, err)
			}
		}

		// The manager that would remove these finalizers is stopped.
		if len(objectsets.ForeignFinalizers(part)) < len(part.GetFinalizers()) {
			if err := client.IgnoreNotFound(c.stripFinalizers(ctx, part)); err != nil {
				return c.cluster.Explain(doing, err)
			}
		}
	}
	return nil
}

// ownPackage is the ClusterPackage of Package Operator's own objects.
type ownPackage struct {
	pkg  *corev1alpha1.ClusterPackage
	sets []*corev1alpha1.ClusterObjectSet
	// parts are the objects that it consists of, owners before dependents. They are deleted.
	parts []client.Object
	// owned are the objects that it has installed and that name parts as owners. They stay.
	owned []client.Object
}

// empty reports whether no part of the package exists.
func (o *ownPackage) empty() bool { return len(o.parts) == 0 }

// paused reports whether none of its revisions writes any more.
func (o *ownPackage) paused() bool {
	return !slices.ContainsFunc(o.sets, func(set *corev1alpha1.ClusterObjectSet) bool {
		return engines.Owns(set) && set.Spec.LifecycleState != corev1alpha1.ObjectSetLifecycleStatePaused
	})
}

// findings are the lines of the plan about the package and the definitions.
func (o *ownPackage) findings() []engineFinding {
	about := engineFinding{"ClusterPackage " + corev1alpha1.EnginePackage, "not found"}
	switch {
	case o.pkg != nil:
		about.text = o.pkg.Spec.Image
	case !o.empty():
		about.text = "deleted, except for " + terminal.Count(len(o.parts), "object") + " of it"
	}

	definitions := 0
	for _, obj := range o.owned {
		if strings.HasSuffix(obj.GetName(), "."+corev1alpha1.GroupName) {
			definitions++
		}
	}

	return []engineFinding{
		about, {"CustomResourceDefinitions", fmt.Sprintf("%d would be deleted with that ClusterPackage", definitions)},
	}
}

// readOwn reads Package Operator's own package.
func (c *adoptEngineCommand) readOwn(ctx context.Context) (o ownPackage, err error) {
	pkg, dep := &corev1alpha1.ClusterPackage{}, &corev1alpha1.ClusterObjectDeployment{}
	// The package can be deleted while its deployment still exists, for example after an interrupt.
	for _, obj := range []client.Object{pkg, dep} {
		switch err := c.client.Get(ctx, client.ObjectKey{Name: corev1alpha1.EnginePackage}, obj); {
		case err == nil:
			o.parts = append(o.parts, obj)
		case !apierrors.IsNotFound(err):
			return o, c.cluster.Explain("cannot read Package Operator's own package", err)
		}
	}

	if pkg.UID != "" {
		o.pkg = pkg
	}
	all, found := &corev1alpha1.ClusterObjectSetList{}, &corev1alpha1.ClusterObjectSliceList{}
	err = errors.Join(c.client.List(ctx, all), c.client.List(ctx, found, client.MatchingLabels{corev1alpha1.SliceOwnerLabel: corev1alpha1.EnginePackage}))
	if err != nil {
		return o, c.cluster.Explain("cannot read Package Operator's own package", err)
	}

	for i := range all.Items {
		set := &all.Items[i]
		ref := metav1.GetControllerOf(set)
		// A revision can have lost its label or its owner, so either suffices.
		if set.Labels[corev1alpha1.ObjectDeploymentLabel] == corev1alpha1.EnginePackage || ref != nil && ref.UID == dep.UID && dep.UID != "" {
			o.sets, o.parts = append(o.sets, set), append(o.parts, set)
		}
	}

	for i := range found.Items {
		o.parts = append(o.parts, &found.Items[i])
	}

	return o, c.readOwned(ctx, &o)
}

// readQuietOwn reads Package Operator's own package once no process leads, because its manager
// might have started since the plan was made.
func (c *adoptEngineCommand) readQuietOwn(ctx context.Context) (ownPackage, error) {
	if err := c.awaitLease(ctx); err != nil {
		return ownPackage{}, err
	}
	return c.readOwn(ctx)
}

// readOwned reads the objects that the package has installed, and the definitions of our kinds,
// which its bootstrap has installed.
func (c *adoptEngineCommand) readOwned(ctx context.Context, o *ownPackage) error {
	parts := sets.New[types.UID]()
	for _, part := range o.parts {
		parts.Insert(part.GetUID())
	}

	seen := sets.New[types.UID]()
	add := func(obj client.Object) {
		if !seen.Has(obj.GetUID()) && slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return parts.Has(ref.UID) }) {
			seen.Insert(obj.GetUID())
			o.owned = append(o.owned, obj)
		}
	}

	for _, set := range o.sets {
		live, err := c.readOwnedBy(ctx, set)
		if err != nil {
			return err
		}
		for _, obj := range live {
			add(obj)
		}
	}

	kind := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.client.List(ctx, list); err != nil {
		return c.cluster.Explain("cannot read the CustomResourceDefinitions", err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
		if strings.HasSuffix(list.Items[i].Name, "."+corev1alpha1.GroupName) {
			add(&list.Items[i])
		}
	}

	slices.SortFunc(o.owned, func(a, b client.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return nil
}

// readOwnedBy reads the objects of a revision. An archived revision might have lost slices and have
// kinds that are no longer served.
func (c *adoptEngineCommand) readOwnedBy(ctx context.Context, set *corev1alpha1.ClusterObjectSet) (map[objects.Key]*unstructured.Unstructured, error) {
	wanted, err := cluster.ReadObjects(ctx, c.cluster, set)
	// An archived revision's slices can be deleted already.
	if err != nil && (engines.Owns(set) || !apierrors.IsNotFound(err)) {
		return nil, c.cluster.Explain("cannot read the objects of "+set.Name, err)
	}
	live, unreadable, err := c.cluster.Live(ctx, wanted)
	for kind, why := range unreadable {
		if engines.Owns(set) {
			err = errors.Join(err, fmt.Errorf("cannot read %s: %s", kind, why))
		}
	}
	return live, err
}

// awaitPaused waits until Package Operator has paused its own revisions, if it runs.
func (c *adoptEngineCommand) awaitPaused(ctx context.Context) error {
	// The own manager pauses the revisions. Without a leader, none can be written.
	err := c.Poll(ctx, func(context.Context) (bool, error) {
		holder, err := c.leader(ctx)
		if err != nil || holder == "" {
			return err == nil, err
		}
		own, err := c.readOwn(ctx)
		return own.paused(), err
	})
	if errors.Is(err, command.ErrTimeout) {
		return fmt.Errorf("Package Operator has not paused its revisions after %s", c.Timeout) //nolint:staticcheck // it is a name
	}

	return err
}

// stripFinalizers removes the finalizers of engines from the current state of a part that is being
// deleted.
func (c *adoptEngineCommand) stripFinalizers(ctx context.Context, part client.Object) error {
	for {
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(part), part); err != nil {
			return err
		}
		before := part.DeepCopyObject().(client.Object)
		part.SetFinalizers(objectsets.ForeignFinalizers(part))
		// The lock keeps a finalizer that another client adds in the meantime.
		err := c.client.Patch(ctx, part, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(command.FieldManager))
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}
