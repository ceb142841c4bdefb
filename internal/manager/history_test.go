package manager

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/test/require"
)

// setJSON is a set as the API server sends it: the n-th revision of a deployment, of
// some objects in two phases.
func setJSON(app string, n, objects int, archived bool) string {
	var phases [2][]string
	for i := range objects {
		phases[i%2] = append(phases[i%2], fmt.Sprintf(`{"object":{"apiVersion":"v1","data":{"value":"%s"},"kind":"ConfigMap","metadata":{"name":"%s-%d"}}}`,
			strings.Repeat("x", 200), app, i))
	}
	lifecycle, conds := "Active", []string{"Available", "Claimed", "Succeeded", "Ready", "Reconciling", "Stalled"}
	if archived {
		lifecycle, conds = "Archived", []string{"Succeeded", "Archived", "Ready", "Reconciling", "Stalled"}
	}
	for i, typ := range conds {
		conds[i] = fmt.Sprintf(`{"type":%q,"status":"True","reason":"Because","message":"All objects are available.","observedGeneration":1,"lastTransitionTime":"2026-01-02T03:04:05Z"}`, typ)
	}
	var previous, controlled []string
	for i := range n {
		previous = append(previous, fmt.Sprintf(`{"name":"%s-hash%d"}`, app, i))
	}
	for i := range objects {
		controlled = append(controlled, fmt.Sprintf(`{"kind":"ConfigMap","namespace":"apps","name":"%s-%d"}`, app, i))
	}
	return fmt.Sprintf(`{"metadata":{"namespace":"apps","name":"%[1]s-hash%[2]d","uid":"%[1]s-uid-of-revision-%[2]d","resourceVersion":"%[2]d","generation":2,
		"labels":{"package-operator.run/object-deployment":"%[1]s","package-operator.run/package":"%[1]s","package-operator.run/instance":"%[1]s","package-operator.run/version":"1.0.%[2]d"},
		"annotations":{"package-operator.run/hash":"hash%[2]d","lockstep.run/object-deployment-uid":"%[1]s-uid","`+corev1alpha1.ObjectDeploymentUIDAnnotation+`":"%[1]s-uid"},
		"finalizers":["package-operator.run/cached"],
		"ownerReferences":[{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectDeployment","name":"%[1]s","uid":"%[1]s-uid","controller":true}]},
		"spec":{"lifecycleState":%[3]q,"revision":%[2]d,"previous":[%[4]s],"phases":[{"name":"one","objects":[%[5]s]},{"name":"two","objects":[%[6]s]}]},
		"status":{"revision":%[2]d,"conditions":[%[7]s],"controllerOf":[%[8]s]}}`,
		app, n, lifecycle, strings.Join(previous, ","), strings.Join(phases[0], ","), strings.Join(phases[1], ","), strings.Join(conds, ","), strings.Join(controlled, ","))
}

func decodeSet(tb testing.TB, text string) *corev1alpha1.ObjectSet {
	tb.Helper()
	set := &corev1alpha1.ObjectSet{}
	require.NoError(tb, json.Unmarshal([]byte(text), set))
	return set
}

func TestHistoryIsSummarized(t *testing.T) {
	t.Parallel()
	sliced := decodeSet(t, setJSON("shop", 3, 4, true))
	sliced.Spec.Phases[1].Slices = []string{"slice"}
	full := sliced.DeepCopy()
	sliced = compacted(t, sliced)
	want := full.DeepCopy()
	want.Labels = map[string]string{corev1alpha1.ObjectDeploymentLabel: "shop", corev1alpha1.PackageVersionLabel: "1.0.3"}
	want.Annotations = map[string]string{corev1alpha1.ObjectDeploymentUIDAnnotation: "shop-uid", corev1alpha1.HashAnnotation: "hash3"}
	want.Spec.Previous = nil
	want.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "two", Slices: []string{"slice"}}}
	want.Status.ControllerOf = nil
	want.Status.Conditions = full.Status.Conditions[:2]
	for i := range want.Status.Conditions {
		want.Status.Conditions[i].Message, want.Status.Conditions[i].LastTransitionTime = "", metav1.Time{}
	}
	require.Equal(t, want, sliced, "fields that decisions read stay, and no others")
	full.OwnerReferences = nil
	for reason, set := range map[string]*corev1alpha1.ObjectSet{
		"with its reference":         sliced,
		"without its reference (GC)": compacted(t, full),
	} {
		if got := objectsets.OwnerOf(set).Name; got != "shop" || objectsets.DeploymentOf(set) != "shop-uid" || objectsets.Owns(set) {
			t.Errorf("%s: the set belongs to %s with UID %s and owns objects: %t", reason, got, objectsets.DeploymentOf(set), objectsets.Owns(set))
		}
	}
}

// compacted returns a set as the cache keeps it.
func compacted(tb testing.TB, set *corev1alpha1.ObjectSet) *corev1alpha1.ObjectSet {
	tb.Helper()
	got, err := (&ownKinds{}).compact(set)
	require.NoError(tb, err)
	return got.(*corev1alpha1.ObjectSet)
}

func TestWhatOwnsObjectsIsKept(t *testing.T) {
	t.Parallel()
	alone := decodeSet(t, setJSON("shop", 3, 4, true))
	alone.OwnerReferences, alone.Labels, alone.Annotations = nil, nil, nil
	for reason, set := range map[string]*corev1alpha1.ObjectSet{
		"an active set": decodeSet(t, setJSON("shop", 3, 4, false)),
		"an archived set that stands alone: only its objects are deleted": alone,
	} {
		want := set.DeepCopy()
		if !objectsets.Owns(set) {
			want.Spec.AvailabilityProbes = nil
			for i := range want.Spec.Phases {
				want.Spec.Phases[i].Objects = nil
			}
		}
		require.Equal(t, want, compacted(t, set), reason)
	}
}
