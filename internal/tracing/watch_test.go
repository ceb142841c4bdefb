package tracing

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// cached lists the objects of a client.
type cached struct {
	cache.Cache
	reader client.Reader
}

func (c cached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.reader.List(ctx, list, options...)
}

// The span of a hand-over belongs to the revision that has taken over.
func TestSuccessor(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := corev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	revision := func(name string, number int64, change ...func(*corev1alpha1.ObjectSet)) *corev1alpha1.ObjectSet {
		return set(append(change, func(s *corev1alpha1.ObjectSet) {
			s.Name, s.UID, s.Spec.Revision, s.Status.Revision = name, types.UID(name), number, number
			s.Annotations[corev1alpha1.ObjectDeploymentUIDAnnotation] = "of-shop"
		})...)
	}
	succeeded, archived := condition(corev1alpha1.ConditionSucceeded, metav1.ConditionTrue, 7), condition(corev1alpha1.ConditionArchived, metav1.ConditionTrue, 60)
	waiting := app(corev1alpha1.PhaseStateProbing, nil)
	for _, test := range []struct {
		reason string
		others []client.Object
		want   string
	}{
		{"the next one has succeeded", []client.Object{revision("a", 1, succeeded, archived), revision("c", 3, succeeded)}, "c"},
		{"the next one goes on, and the one before has succeeded", []client.Object{revision("a", 1, succeeded), revision("c", 3, waiting)}, ""},
		{"a later one goes on", []client.Object{revision("c", 3, succeeded), revision("d", 4, waiting)}, "c"},
		{"a later one is history", []client.Object{revision("c", 3, succeeded), revision("d", 4, succeeded, archived)}, "c"},
		{"the one before is activated again", []client.Object{revision("a", 3, succeeded)}, "a"},
		{"there is no other", nil, ""},
	} {
		replaced := revision("b", 2, archived)
		f := &Follower{Cache: cached{reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(test.others, replaced)...).Build()}}
		got := ""
		if successor := f.successor(t.Context(), replaced); successor != nil {
			got = successor.GetName()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}
