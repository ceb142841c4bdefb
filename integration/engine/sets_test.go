package engine_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// The current set is deleted by a user, and a foreign finalizer holds it: its successor
// takes the objects over, our finalizers are removed, and waiting costs no requests.
func TestSetHeldByOthersCostsNothing(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := deployment(ns, phase("one", configMap("object", "v1")))
	dep.Annotations = map[string]string{corev1alpha1.SlicedAnnotation: "true"} // unused slices are looked for
	install(t, dep)
	old := currentSet(t, dep)
	before := get(t, ns, "object")
	meddle(t, old, `{"metadata":{"finalizers":["package-operator.run/cached","example.com/hold"]}}`)
	require.NoError(t, env.Client.Delete(t.Context(), old))
	await(t, old, "to be held by the other finalizer alone", func(s *corev1alpha1.ObjectSet) error {
		if len(s.Finalizers) != 1 || s.Finalizers[0] != "example.com/hold" {
			return fmt.Errorf("it is held by %v", s.Finalizers)
		}
		return nil
	})
	awaitRollout(t, dep)
	env.Settle(t, ns)
	j := env.Journal(t)
	edit(t, ns, "object", `{"metadata":{"annotations":{"their":"note"}}}`)
	j.Rest(t, ns)
	if requests := j.Requests(t, ns); len(requests) > 0 {
		t.Errorf("a set that a foreign finalizer holds costs requests:%s", harness.Lines(requests))
	}
	if after := get(t, ns, "object"); after.UID != before.UID || after.Data["value"] != "v1" {
		t.Error("the object was replaced")
	}
	meddle(t, old, `{"metadata":{"finalizers":null}}`)
}

func currentSet(t *testing.T, dep *corev1alpha1.ObjectDeployment) *corev1alpha1.ObjectSet {
	t.Helper()
	sets := &corev1alpha1.ObjectSetList{}
	require.NoError(t, env.Client.List(t.Context(), sets, client.InNamespace(dep.Namespace)))
	if len(sets.Items) != 1 {
		t.Fatalf("there are %d sets", len(sets.Items))
	}
	return &sets.Items[0]
}

func meddle(t *testing.T, obj client.Object, text string) {
	t.Helper()
	require.NoError(t, env.Client.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(text)), client.FieldOwner("someone")))
}

func gone(ctx context.Context, objs ...client.Object) error {
	for _, obj := range objs {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err == nil {
			return fmt.Errorf("%s is there, deleted at %v, finalizers %v", obj.GetName(), obj.GetDeletionTimestamp(), obj.GetFinalizers())
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
