package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
)

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
