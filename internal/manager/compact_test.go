package manager

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/test/require"
)

func newSet(archived bool) *corev1alpha1.ObjectSet {
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
		Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
	}}
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{
		Name: "deploy", Slices: []string{"s"},
		Objects: []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte("{}")}}},
	}}
	set.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{{}}
	conditions.Set(&set.Status.Conditions, 1, corev1alpha1.ConditionArchived, archived, "X", "")
	return set
}

func TestCompact(t *testing.T) {
	t.Parallel()
	for name, archived := range map[string]bool{"active": false, "archived": true} {
		got, err := (&ownKinds{}).compact(newSet(archived))
		require.NoError(t, err)
		set := got.(*corev1alpha1.ObjectSet)
		if set.ManagedFields != nil || !cmp.Equal(set.Annotations, map[string]string{"a": "b"}) {
			t.Errorf("%s: %d managed fields, annotations %v", name, len(set.ManagedFields), set.Annotations)
		}
		want := newSet(archived).Spec
		if archived {
			want.Phases[0].Objects, want.AvailabilityProbes = nil, nil
		}
		require.Equal(t, want, set.Spec, name)
	}
}

// TestLargeOwnKinds: the memory of the caches for the Packages and repositories of one namespace is
// bounded by its share, however large they are, and however much other memory the namespace uses.
// It is given back when they are deleted.
func TestLargeOwnKinds(t *testing.T) {
	t.Parallel()
	const number, share = 100, 19 << 20 // of 100 MiB
	text := strings.Repeat("a", 1<<20)
	kinds := map[string]func(meta metav1.ObjectMeta) metav1.Object{
		"config": func(meta metav1.ObjectMeta) metav1.Object {
			return &corev1alpha1.Package{ObjectMeta: meta, Spec: corev1alpha1.PackageSpec{
				Image: "shop:v1", Config: &runtime.RawExtension{Raw: []byte(`{"a":"` + text + `"}`)},
			}}
		},
		"patches": func(meta metav1.ObjectMeta) metav1.Object {
			return &corev1alpha1.Package{ObjectMeta: meta, Spec: corev1alpha1.PackageSpec{
				Image: "shop:v1", Patches: []corev1alpha1.PackagePatch{{Patch: text}}, CommonMetadata: &corev1alpha1.CommonMetadata{Annotations: map[string]string{"a": text}},
			}}
		},
		"inline": func(meta metav1.ObjectMeta) metav1.Object {
			return &corev1alpha1.PackageRepository{ObjectMeta: meta, Spec: corev1alpha1.PackageRepositorySpec{
				Source: corev1alpha1.RepositorySource{Inline: &corev1alpha1.RepositoryInlineSource{Files: map[string]string{"a.yaml": text}}},
			}}
		},
	}
	for name, large := range kinds {
		account := quota.New(100 << 20)
		own := &ownKinds{account}
		sum, reduced := 0, 0
		var all []any
		for i := range number {
			got, err := own.compactSafely(large(metav1.ObjectMeta{
				Namespace: "evil", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)), Generation: 7,
				Annotations: map[string]string{"a": text[:250<<10], corev1alpha1.RetryAnnotation: "1", "package-operator.run/a": text[:250<<10]},
			}))
			require.NoError(t, err)
			raw, err := json.Marshal(got)
			require.NoError(t, err)
			sum += len(raw)
			all = append(all, got)
			o := got.(metav1.Object)
			if o.GetGeneration() != 7 || o.GetAnnotations()[corev1alpha1.RetryAnnotation] != "1" {
				t.Fatalf("%s: %d lost its metadata", name, i)
			}
			if mutationcache.Reduced(o) {
				if reduced++; len(raw) > 4<<10 {
					t.Fatalf("%s: a reduced one has %d bytes", name, len(raw))
				}
				if again, _ := own.compactSafely(o); !cmp.Equal(again, got) {
					t.Fatalf("%s: it is another one when it is reduced again", name)
				}
			}
		}
		if sum > share || reduced < number/2 {
			t.Errorf("%s: %d KiB are kept of %d objects; %d are reduced", name, sum>>10, number, reduced)
		}
		if other, _ := own.compactSafely(large(metav1.ObjectMeta{Namespace: "victim", Name: "x", UID: "x"})); mutationcache.Reduced(other.(metav1.Object)) {
			t.Errorf("%s: one of another namespace is reduced", name)
		}
		for _, o := range all {
			own.deleted(cache.DeletedFinalStateUnknown{Obj: o})
		}
		if got, _ := own.compactSafely(large(metav1.ObjectMeta{Namespace: "evil", Name: "x", UID: "y"})); mutationcache.Reduced(got.(metav1.Object)) {
			t.Errorf("%s: no memory is given back", name)
		}
	}
	small := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "x", UID: "z"}}
	if got, _ := (&ownKinds{quota.New(1)}).compactSafely(small.DeepCopy()); !cmp.Equal(got, any(small)) {
		t.Errorf("a small one is %v", got)
	}
}

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
