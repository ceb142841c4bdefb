package dryrun

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/objects/objectslices"
	"lockstep.run/lockstep/internal/objectsets"
)

// eachSet visits the sets of a namespace, in pages.
func eachSet(ctx context.Context, reader client.Reader, scope corev1alpha1.Scope, namespace string, visit func(corev1alpha1.GenericObjectSet) error) error {
	return cluster.EachPage(ctx, reader, namespace, cluster.SetPage, scope.NewObjectSetList, func(page corev1alpha1.GenericObjectSetList) error {
		for _, set := range page.GenericObjectSets() {
			if err := visit(set); err != nil {
				return err
			}
		}
		return nil
	})
}

// nothingStored returns an empty Stored.
func nothingStored() objectsets.Stored {
	return objectsets.Stored{
		Slices: map[string][]corev1alpha1.ObjectSetObject{}, Secrets: map[string][]corev1alpha1.ObjectSetObject{},
	}
}

// readStored adds the objects of slices, which never change.
func readStored(
	ctx context.Context, reader client.Reader, scope corev1alpha1.Scope, set corev1alpha1.GenericObjectSet, into objectsets.Stored,
) error {
	for _, phase := range set.ObjectSetSpec().Phases {
		for _, name := range phase.Slices {
			// Revisions can share slices, so each is read once. Old sets can name invalid ones.
			if _, known := into.Slices[name]; known || !objectsets.Stores(name) {
				continue
			}

			slice := scope.NewObjectSlice()
			if err := reader.Get(ctx, client.ObjectKey{Namespace: set.GetNamespace(), Name: name}, slice); err != nil {
				return fmt.Errorf("read slice %s of %s: %w", name, set.GetName(), err)
			}
			into.Slices[name] = *slice.SliceObjects()
		}

		for _, name := range phase.SecretSlices {
			if _, known := into.Secrets[name]; known || !objectsets.Stores(name) {
				continue
			}
			secret := &corev1.Secret{}
			if err := reader.Get(ctx, client.ObjectKey{Namespace: cmp.Or(set.GetNamespace(), corev1alpha1.DefaultNamespace), Name: name}, secret); err != nil {
				return fmt.Errorf("read Secret %s of %s: %w", name, set.GetName(), err)
			}
			opened, err := objectslices.Open(secret)
			if err != nil {
				return err
			}
			into.Secrets[name] = opened
		}
	}

	return nil
}

// TemplateOf returns the template of a revision, with the objects of its slices.
func TemplateOf(
	ctx context.Context, reader client.Reader, scope corev1alpha1.Scope, set corev1alpha1.GenericObjectSet,
) (corev1alpha1.ObjectSetTemplateSpec, error) {
	spec := *set.ObjectSetSpec().ObjectSetTemplateSpec.DeepCopy()
	stored := nothingStored()
	err := readStored(ctx, reader, scope, set, stored)
	stored.Inline(spec.Phases)
	return spec, err
}
