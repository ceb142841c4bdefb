package cluster

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

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

// ChangeCause is what made a revision, by those before it, the oldest first: an undo is recognized by its template.
func ChangeCause(before []corev1alpha1.GenericObjectSet, set corev1alpha1.GenericObjectSet) string {
	hash := set.GetAnnotations()[corev1alpha1.HashAnnotation]
	for _, earlier := range slices.Backward(before) {
		if hash != "" && earlier.GetAnnotations()[corev1alpha1.HashAnnotation] == hash {
			return fmt.Sprintf("Undone to revision %d.", earlier.ObjectSetSpec().Revision)
		}
	}
	return set.GetAnnotations()[corev1alpha1.ChangeCauseAnnotation]
}

// ComparableObjects are the objects of a revision. One with sensitive values is not compared.
func (c *Cluster) ComparableObjects(ctx context.Context, set corev1alpha1.GenericObjectSet) ([]objectdiff.Object, error) {
	all, sealed, err := c.Objects(ctx, set)
	if err != nil {
		return nil, err
	}
	if sealed {
		return nil, fmt.Errorf("revision %d has sensitive values: its objects are kept in Secrets while it is in charge and not afterwards, so it is not compared", set.ObjectSetSpec().Revision)
	}
	return all, nil
}

// Compare compares two revisions by their objects.
func Compare(from, to corev1alpha1.GenericObjectSet, before, after []objectdiff.Object) objectdiff.Comparison {
	out := objectdiff.Comparison{From: from.ObjectSetSpec().Revision, To: to.ObjectSetSpec().Revision, Objects: []objectdiff.Difference{}}
	was, is := phaseNames(from), phaseNames(to)
	if !equality.Semantic.DeepEqual(was, is) {
		out.Phases = &objectdiff.OrderChange{Before: was, After: is}
	}
	out.Probes = !equality.Semantic.DeepEqual(from.ObjectSetSpec().AvailabilityProbes, to.ObjectSetSpec().AvailabilityProbes)
	for _, ch := range objectdiff.Sets(before, after) {
		out.Objects = append(out.Objects, objectdiff.Difference{
			Action: ch.Kind, Group: ch.Key.Group, Kind: ch.Key.Kind, Namespace: ch.Key.Namespace, Name: ch.Key.Name,
			Phase: ch.Phase, PhaseBefore: ch.PhaseBefore, Fields: ch.Fields,
		})
	}
	return out
}

func phaseNames(set corev1alpha1.GenericObjectSet) []string {
	names := []string{}
	for _, p := range set.ObjectSetSpec().Phases {
		names = append(names, p.Name)
	}
	return names
}
