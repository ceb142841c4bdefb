package movein_test

import (
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// verdict is Package Operator's decision about an existing object.
type verdict string

const (
	patches  verdict = "patches it"
	leaves   verdict = "leaves it alone"
	adopts   verdict = "adopts it"
	refuses  verdict = "refuses it: not owned by a previous revision"
	collides verdict = "refuses it: a revision collision"
)

// former is a revision of Package Operator.
type former struct {
	uid      types.UID
	revision int64
	// previous are the revisions that it can take objects from.
	previous []types.UID
	mode     corev1alpha1.CollisionProtection
}

// judge returns the decision of Package Operator's rules for a revision and an object. The first
// matching rule wins.
func (f former) judge(obj metav1.Object) verdict {
	controller := metav1.GetControllerOf(obj)
	revision, _ := strconv.ParseInt(obj.GetAnnotations()[corev1alpha1.RevisionAnnotation], 10, 64)
	mode := f.mode
	if obj.GetLabels()[corev1alpha1.PackageLabel] == corev1alpha1.EnginePackage {
		mode = corev1alpha1.CollisionProtectionNone
	}
	switch {
	case controller != nil && controller.UID == f.uid:
		return patches
	case revision > f.revision:
		return leaves
	case mode == corev1alpha1.CollisionProtectionNone:
		return adopts
	case mode == corev1alpha1.CollisionProtectionIfNoController && controller == nil:
		return adopts
	case controller == nil || !slices.Contains(f.previous, controller.UID):
		return refuses
	case revision == f.revision:
		return collides
	}
	return adopts
}

// The rules match the table of the reference, row by row.
func TestRules(t *testing.T) {
	t.Parallel()
	object := func(controller types.UID, revision string) metav1.Object {
		obj := &metav1.ObjectMeta{Annotations: map[string]string{corev1alpha1.RevisionAnnotation: revision}}
		if controller != "" {
			obj.OwnerReferences = []metav1.OwnerReference{{UID: controller, Controller: new(bool)}}
			*obj.OwnerReferences[0].Controller = true
		}
		return obj
	}
	f := former{uid: "new", revision: 3, previous: []types.UID{"old"}, mode: corev1alpha1.CollisionProtectionPrevent}
	with := func(mode corev1alpha1.CollisionProtection) former { g := f; g.mode = mode; return g }
	for reason, tc := range map[string]struct {
		by   former
		obj  metav1.Object
		want verdict
	}{
		"its own":                          {f, object("new", "3"), patches},
		"of a newer revision":              {f, object("old", "4"), leaves},
		"None":                             {with(corev1alpha1.CollisionProtectionNone), object("other", "1"), adopts},
		"IfNoController, free":             {with(corev1alpha1.CollisionProtectionIfNoController), object("", ""), adopts},
		"IfNoController, controlled":       {with(corev1alpha1.CollisionProtectionIfNoController), object("other", "1"), refuses},
		"controlled by the deployment":     {f, object("deployment", "2"), refuses},
		"free":                             {f, object("", "2"), refuses},
		"of a previous one, same revision": {f, object("old", "3"), collides},
		"of a previous one":                {f, object("old", "2"), adopts},
	} {
		if got := tc.by.judge(tc.obj); got != tc.want {
			t.Errorf("%s: it %s, want: it %s", reason, got, tc.want)
		}
	}
}

// takesBack checks that Package Operator can take the installation back. By its rules, the
// current revision keeps its objects, and the next one adopts them, because it finds the
// earlier revisions by their labels.
func (i *installation) takesBack(t *testing.T) {
	t.Helper()
	dep := i.scope.NewObjectDeployment()
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Namespace: i.namespace, Name: i.name}, dep))
	if len(dep.GetFinalizers()) > 0 {
		t.Errorf("%s: the deployment has the finalizers %v, which no controller removes", i.namespace, dep.GetFinalizers())
	}
	selector, err := metav1.LabelSelectorAsSelector(&dep.ObjectDeploymentSpec().Selector)
	require.NoError(t, err)
	if !selector.Matches(labels.Set(dep.ObjectDeploymentSpec().Template.Metadata.Labels)) {
		t.Errorf("%s: the next revision would not be selected", i.namespace)
	}
	list, sliced := i.scope.NewObjectSetList(), i.scope.NewObjectSliceList()
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(i.namespace), client.MatchingLabelsSelector{Selector: selector}))
	require.NoError(t, env.Client.List(t.Context(), sliced, client.InNamespace(i.namespace)))
	for _, slice := range sliced.GenericObjectSlices() {
		if len(slice.GetFinalizers()) > 0 {
			t.Errorf("%s: slice %s has the finalizers %v, which no controller removes", i.namespace, slice.GetName(), slice.GetFinalizers())
		}
	}
	var present corev1alpha1.GenericObjectSet
	next := former{uid: "next", mode: corev1alpha1.CollisionProtectionPrevent}
	for _, set := range list.GenericObjectSets() {
		next.previous = append(next.previous, set.GetUID())
		if number := set.ObjectSetSpec().Revision; number >= next.revision {
			next.revision, present = number+1, set
		}
	}
	if present == nil {
		t.Fatalf("%s: the deployment selects no revision", i.namespace)
	}
	now := former{uid: present.GetUID(), revision: present.ObjectSetSpec().Revision, mode: corev1alpha1.CollisionProtectionPrevent}
	for name, obj := range i.live(t) {
		if got := now.judge(obj); got != patches {
			t.Errorf("%s: the present revision finds %s and %s", i.namespace, name, got)
		}
		if got := next.judge(obj); got != adopts {
			t.Errorf("%s: the next revision finds %s and %s", i.namespace, name, got)
		}
		ref := metav1.GetControllerOf(obj)
		if ref == nil || ref.Kind != i.scope.Kind("ObjectSet") || ref.BlockOwnerDeletion == nil || !*ref.BlockOwnerDeletion || obj.GetLabels()[corev1alpha1.CacheLabel] != "True" {
			t.Errorf("%s: %s has the controller %+v and the labels %v", i.namespace, name, ref, obj.GetLabels())
		}
	}
}
