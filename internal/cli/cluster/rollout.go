package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// Rollout is a package or deployment with its revisions.
type Rollout struct {
	Target progress.Target
	// Package is nil if the argument names a deployment.
	Package    corev1alpha1.GenericPackage
	Deployment corev1alpha1.GenericObjectDeployment
	// Sets are the revisions, oldest first.
	Sets []corev1alpha1.GenericObjectSet
}

// String names the package or deployment, as in "package shop/web".
func (r *Rollout) String() string {
	if r.Package != nil {
		return r.Target.String()
	}
	key := objects.Key{Kind: strings.ToLower(r.Target.Scope.Kind("ObjectDeployment")), Namespace: r.Target.Namespace, Name: r.Target.Name}
	return key.String()
}

// Rollout reads a package or deployment with its revisions.
func (c *Cluster) Rollout(ctx context.Context, n Name) (*Rollout, error) {
	r := &Rollout{}
	if n.Deployment {
		r.Target = c.Target(n.Scope, n.Name)
	} else {
		var err error
		if r.Target, r.Package, err = c.Find(ctx, n); err != nil {
			return nil, err
		}
	}

	r.Deployment = r.Target.Scope.NewObjectDeployment()
	err := c.Get(ctx, client.ObjectKey{Namespace: r.Target.Namespace, Name: r.Target.Name}, r.Deployment)
	switch {
	// A package that is still unpacked has no deployment.
	case apierrors.IsNotFound(err) && !Unserved(err) && r.Package != nil:
		return nil, fmt.Errorf("%s has no revision yet", r)
	case apierrors.IsNotFound(err) && !Unserved(err):
		return nil, fmt.Errorf("there is no %s", r)
	case err != nil:
		return nil, c.Explain("cannot read the deployment of "+r.String(), err)
	}

	// The deployment's name is the package's, so another owner can have it already.
	if owner := metav1.GetControllerOf(r.Deployment); r.Package != nil && (owner == nil || owner.UID != r.Package.GetUID()) {
		return nil, fmt.Errorf("%s has no revision yet: the deployment of the same name belongs to another owner", r)
	}
	return r, c.readSets(ctx, r)
}

// readSets reads the revisions, oldest first. The label selects them only if the name fits into
// one.
func (c *Cluster) readSets(ctx context.Context, r *Rollout) error {
	opts := []client.ListOption{client.InNamespace(r.Target.Namespace)}
	if len(validation.IsValidLabelValue(r.Target.Name)) == 0 {
		opts = append(opts, client.MatchingLabels{corev1alpha1.ObjectDeploymentLabel: r.Target.Name})
	}

	list := r.Target.Scope.NewObjectSetList()
	if err := c.List(ctx, list, opts...); err != nil {
		return c.Explain("cannot read the revisions of "+r.String(), err)
	}

	for _, set := range list.GenericObjectSets() {
		if objectsets.DeploymentOf(set) == r.Deployment.GetUID() {
			r.Sets = append(r.Sets, set)
		}
	}

	slices.SortFunc(r.Sets, func(a, b corev1alpha1.GenericObjectSet) int {
		return cmp.Or(cmp.Compare(a.ObjectSetSpec().Revision, b.ObjectSetSpec().Revision), cmp.Compare(a.GetName(), b.GetName()))
	})
	return nil
}

// Revision returns a revision, or an error that lists the existing ones.
func (r *Rollout) Revision(number int64) (corev1alpha1.GenericObjectSet, error) {
	var numbers []string
	for _, set := range r.Sets {
		if set.ObjectSetSpec().Revision == number {
			return set, nil
		}
		numbers = append(numbers, fmt.Sprint(set.ObjectSetSpec().Revision))
	}
	return nil, fmt.Errorf("revision not found: %s has no revision %d; it has: %s", r, number, cmp.Or(strings.Join(numbers, ", "), "none"))
}

// Current returns the revision in charge, or else the newest one; nil if there is none.
func (r *Rollout) Current() corev1alpha1.GenericObjectSet {
	// The sets decide, because the status of the deployment lags behind them right after a change.
	for _, set := range slices.Backward(r.Sets) {
		if !objectsets.Waiting(set) && set.ObjectSetSpec().LifecycleState != corev1alpha1.ObjectSetLifecycleStateArchived {
			return set
		}
	}
	if len(r.Sets) == 0 {
		return nil
	}
	return r.Sets[len(r.Sets)-1]
}

// Objects returns the objects of a revision, without those in Secrets. sealed reports whether there
// are any.
func (c *Cluster) Objects(ctx context.Context, set corev1alpha1.GenericObjectSet) (all []objectdiff.Object, sealed bool, err error) {
	all, err = ReadObjects(ctx, c, set)
	return all, slices.ContainsFunc(set.ObjectSetSpec().Phases, func(p corev1alpha1.ObjectSetTemplatePhase) bool { return len(p.SecretSlices) > 0 }),
		c.Explain(fmt.Sprintf("cannot read the objects of revision %d", set.ObjectSetSpec().Revision), err)
}

// ReadObjects reads the objects of a revision, without those in Secrets.
func ReadObjects(ctx context.Context, reader client.Reader, set corev1alpha1.GenericObjectSet) ([]objectdiff.Object, error) {
	var all []objectdiff.Object
	for _, phase := range set.ObjectSetSpec().Phases {
		stored := slices.Clone(phase.Objects)
		for _, name := range phase.Slices {
			slice := corev1alpha1.ScopeOf(set.GetNamespace()).NewObjectSlice()
			if err := reader.Get(ctx, client.ObjectKey{Namespace: set.GetNamespace(), Name: name}, slice); err != nil {
				return nil, err
			}
			stored = append(stored, *slice.SliceObjects()...)
		}

		for _, o := range stored {
			object := objectdiff.Object{Phase: phase.Name}
			if err := json.Unmarshal(o.Object.Raw, &object.Value); err != nil {
				return nil, fmt.Errorf("an object in phase %s cannot be read", phase.Name)
			}
			// The namespace of the target is the default for objects in another cluster.
			object.Key = objectdiff.KeyOf(object.Value, set.ObjectSetSpec().TargetRef.NamespaceOf(set.GetNamespace()))
			all = append(all, object)
		}
	}

	return all, nil
}
