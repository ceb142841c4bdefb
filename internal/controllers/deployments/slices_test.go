package deployments

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// TestSlicesStayWhileTheyAreNamed: a slice goes when neither the template nor any
// set names it, for so long that nobody is about to (invariant 4: a revision's
// record is there as long as the revision).
func TestSlicesStayWhileTheyAreNamed(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	scheme := runtime.NewScheme()
	if err := corev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	controlledBy := func(uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{
			APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "shop", UID: uid, Controller: ptr.To(true),
		}}
	}
	slice := func(name string, age time.Duration, owner types.UID) client.Object {
		return &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-age)), OwnerReferences: controlledBy(owner),
			Labels: map[string]string{corev1alpha1.SliceOwnerLabel: "shop"}, Finalizers: []string{corev1alpha1.CachedFinalizer},
		}}
	}
	old := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-1", UID: "set", OwnerReferences: controlledBy("deployment")}}
	old.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Slices: []string{"of-a-set"}}}
	server := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(old, ownerIndex, func(client.Object) []string { return []string{"ObjectDeployment shop/shop"} }).
		WithObjects(old,
			slice("of-a-set", time.Hour, "deployment"), slice("of-the-template", time.Hour, "deployment"), slice("young", time.Second, "deployment"),
			slice("of-another-deployment", time.Hour, "other"), slice("unused", time.Hour, "deployment")).
		Build()
	s := sessionOf(server, server)
	s.Now = func() time.Time { return noon }
	s.deployment.ObjectDeploymentSpec().Template.Spec.Phases[0].Slices = []string{"of-the-template"}
	if err := s.collectSlices(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left corev1alpha1.ObjectSliceList
	if err := server.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range left.Items {
		names = append(names, left.Items[i].Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"of-a-set", "of-another-deployment", "of-the-template", "young"}, names); diff != "" {
		t.Errorf("the slices that are left (-want +got):\n%s", diff)
	}
	if due := noon.Add(sliceGrace); !s.slicesDue.Equal(due) {
		t.Errorf("the young one is looked at again at %s, want %s", s.slicesDue, due)
	}
}
