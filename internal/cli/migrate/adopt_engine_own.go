package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/engines"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

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

// ofEngine reports whether a finalizer belongs to an engine.
func ofEngine(f string) bool {
	return f == corev1alpha1.CachedFinalizer || f == corev1alpha1.MetricsFinalizer
}

// stripFinalizers removes the finalizers of engines from the current state of a part that is being
// deleted.
func (c *adoptEngineCommand) stripFinalizers(ctx context.Context, part client.Object) error {
	for {
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(part), part); err != nil {
			return err
		}
		before := part.DeepCopyObject().(client.Object)
		part.SetFinalizers(slices.DeleteFunc(slices.Clone(part.GetFinalizers()), ofEngine))
		// The lock keeps a finalizer that another client adds in the meantime.
		err := c.client.Patch(ctx, part, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(command.FieldManager))
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}
