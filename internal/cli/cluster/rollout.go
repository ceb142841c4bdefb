package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

	slices.SortFunc(r.Sets, objectsets.ByRevision)
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
	return all, len(objectsets.SecretsOf(set)) > 0, c.Explain(fmt.Sprintf("cannot read the objects of revision %d", set.ObjectSetSpec().Revision), err)
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

// Previous returns the revision before another one.
func (r *Rollout) Previous(of corev1alpha1.GenericObjectSet) (corev1alpha1.GenericObjectSet, error) {
	var found corev1alpha1.GenericObjectSet
	for _, set := range r.Sets {
		if set.ObjectSetSpec().Revision < of.ObjectSetSpec().Revision {
			found = set
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s has no revision before %d", r, of.ObjectSetSpec().Revision)
	}
	return found, nil
}

// LastGood returns the last revision before another one that succeeded and was not rejected.
func (r *Rollout) LastGood(before corev1alpha1.GenericObjectSet) (corev1alpha1.GenericObjectSet, error) {
	number := before.ObjectSetSpec().Revision
	var passed []string
	for _, set := range slices.Backward(r.Sets) {
		switch {
		case set.ObjectSetSpec().Revision >= number:
		case meta.IsStatusConditionTrue(*set.StatusConditions(), corev1alpha1.ConditionSucceeded) && !r.rejected(set):
			return set, nil
		default:
			passed = append(passed, fmt.Sprint(set.ObjectSetSpec().Revision))
		}
	}

	if len(passed) > 0 {
		return nil, fmt.Errorf("no revision of %s before %d has succeeded without being rejected. To go back to another one (%s) anyway, name it with --to-revision",
			r, number, strings.Join(passed, ", "))
	}
	return nil, fmt.Errorf("%s has no revision before %d", r, number)
}

// rejected reports whether the content of a revision was rejected, by a user or because it missed
// its deadline.
func (r *Rollout) rejected(set corev1alpha1.GenericObjectSet) bool {
	hash := set.GetAnnotations()[corev1alpha1.HashAnnotation]
	return hash != "" && slices.ContainsFunc(r.Deployment.ObjectDeploymentStatus().Rejected, func(c corev1alpha1.RejectedContent) bool {
		// The same template can have been rejected for another version of the package only, so both
		// have to agree.
		return c.TemplateHash == hash && c.Digest == set.GetAnnotations()[corev1alpha1.PackageDigestAnnotation]
	})
}

// ChangeCause returns the cause of a revision, given the revisions before it, oldest first. The
// annotation describes the change that created the set, which might have been for an earlier
// revision.
func ChangeCause(before []corev1alpha1.GenericObjectSet, set corev1alpha1.GenericObjectSet) string {
	if from := set.GetAnnotations()[corev1alpha1.RolledBackFromAnnotation]; from != "" {
		return fmt.Sprintf("Rolled back from revision %s.", from)
	}

	hash := set.GetAnnotations()[corev1alpha1.HashAnnotation]
	for _, earlier := range slices.Backward(before) {
		// A revision with the content of an earlier one is a rollback, also without an annotation.
		if hash != "" && earlier.GetAnnotations()[corev1alpha1.HashAnnotation] == hash {
			return fmt.Sprintf("Back to revision %d.", earlier.ObjectSetSpec().Revision)
		}
	}
	return set.GetAnnotations()[corev1alpha1.ChangeCauseAnnotation]
}

// Compare compares two revisions by their objects. A revision with sensitive values is not compared.
func (c *Cluster) Compare(ctx context.Context, from, to corev1alpha1.GenericObjectSet) (out objectdiff.Comparison, err error) {
	var objects [2][]objectdiff.Object
	for i, set := range []corev1alpha1.GenericObjectSet{from, to} {
		var sealed bool
		if objects[i], sealed, err = c.Objects(ctx, set); err != nil {
			return out, err
		}
		if sealed {
			return out, fmt.Errorf("revision %d has sensitive values: its objects are kept in Secrets only while it is in charge, so it is not compared", set.ObjectSetSpec().Revision)
		}
	}

	out = objectdiff.Comparison{From: from.ObjectSetSpec().Revision, To: to.ObjectSetSpec().Revision, Objects: objectdiff.Sets(objects[0], objects[1])}
	was, is := phaseNames(from), phaseNames(to)
	if !equality.Semantic.DeepEqual(was, is) {
		out.Phases = &objectdiff.OrderChange{Before: was, After: is}
	}
	out.Probes = !equality.Semantic.DeepEqual(from.ObjectSetSpec().AvailabilityProbes, to.ObjectSetSpec().AvailabilityProbes)
	return out, nil
}

// phaseNames returns the names of the phases in their order. It is never nil, so that JSON has a
// list.
func phaseNames(set corev1alpha1.GenericObjectSet) []string {
	names := []string{}
	for _, p := range set.ObjectSetSpec().Phases {
		names = append(names, p.Name)
	}
	return names
}
