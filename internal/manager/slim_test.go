package manager

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/rollout"
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
	if err := json.Unmarshal([]byte(text), set); err != nil {
		tb.Fatal(err)
	}
	return set
}

// kept returns the sets as a relay keeps them after it was told of each.
func kept(tb testing.TB, sets ...*corev1alpha1.ObjectSet) *relay {
	tb.Helper()
	r := newRelay(nil, &corev1alpha1.ObjectSet{}, nil)
	items := make([]any, len(sets))
	for i, set := range sets {
		items[i] = set
	}
	if err := r.Replace(items, "1"); err != nil {
		tb.Fatal(err)
	}
	return r
}

func TestHistoryIsSummarized(t *testing.T) {
	t.Parallel()
	sliced := decodeSet(t, setJSON("shop", 3, 4, true))
	sliced.Spec.Phases[1].Slices = []string{"slice"}
	full := sliced.DeepCopy()
	sliced = kept1(t, sliced)
	want := full.DeepCopy()
	want.Labels = map[string]string{corev1alpha1.ObjectDeploymentLabel: "shop"}
	want.Annotations = map[string]string{corev1alpha1.ObjectDeploymentUIDAnnotation: "shop-uid"}
	want.Spec.Previous = nil
	want.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "two", Slices: []string{"slice"}}}
	want.Status.ControllerOf = nil
	want.Status.Conditions = full.Status.Conditions[:2]
	for i := range want.Status.Conditions {
		want.Status.Conditions[i].Message, want.Status.Conditions[i].LastTransitionTime = "", metav1.Time{}
	}
	if diff := cmp.Diff(want, sliced); diff != "" {
		t.Error("what decisions ask for stays, and nothing else:", diff)
	}
	full.OwnerReferences = nil
	for reason, set := range map[string]*corev1alpha1.ObjectSet{
		"with its reference":         sliced,
		"without its reference (GC)": kept1(t, full),
	} {
		if got := rollout.OwnerOf(set).Name; got != "shop" || rollout.DeploymentOf(set) != "shop-uid" || rollout.Owns(set) {
			t.Errorf("%s: the set belongs to %s with UID %s and owns objects: %t", reason, got, rollout.DeploymentOf(set), rollout.Owns(set))
		}
	}
}

// kept1 returns a set as a relay keeps it.
func kept1(tb testing.TB, set *corev1alpha1.ObjectSet) *corev1alpha1.ObjectSet {
	return kept(tb, set).known[cache.MetaObjectToName(set)].(*corev1alpha1.ObjectSet)
}

func TestWhatOwnsObjectsIsKept(t *testing.T) {
	t.Parallel()
	alone := decodeSet(t, setJSON("shop", 3, 4, true))
	alone.OwnerReferences, alone.Labels, alone.Annotations = nil, nil, nil
	for reason, set := range map[string]*corev1alpha1.ObjectSet{
		"an active set": decodeSet(t, setJSON("shop", 3, 4, false)),
		"an archived set that stands alone: only its objects go": alone,
	} {
		want := set.DeepCopy()
		if !rollout.Owns(set) {
			forgetObjects(want)
		}
		if diff := cmp.Diff(want, kept1(t, set)); diff != "" {
			t.Errorf("%s: %s", reason, diff)
		}
	}
}

// Sets of one deployment say the same of it, and states of one set have the same
// objects: once in memory.
func TestSetsShareWhatIsEqual(t *testing.T) {
	t.Parallel()
	first, second := decodeSet(t, setJSON("shop", 1, 2, true)), decodeSet(t, setJSON("shop", 2, 2, true))
	active, later := decodeSet(t, setJSON("shop", 3, 2, false)), decodeSet(t, setJSON("shop", 3, 2, false))
	r := kept(t, first)
	r.ctx = t.Context()
	known := func(set *corev1alpha1.ObjectSet) *corev1alpha1.ObjectSet {
		return r.known[cache.MetaObjectToName(set)].(*corev1alpha1.ObjectSet)
	}
	go func() {
		for {
			select {
			case <-r.events:
			case <-r.ctx.Done():
				return
			}
		}
	}()
	later.ResourceVersion = "9"
	// The active set comes between those that are archived before and after it.
	for _, set := range []*corev1alpha1.ObjectSet{active, second, later} {
		if err := r.Update(set); err != nil {
			t.Fatal(err)
		}
	}
	first, second = known(first), known(second)
	if &first.OwnerReferences[0] != &later.OwnerReferences[0] {
		t.Error("the sets of a deployment have a reference each")
	}
	if &active.Spec.Phases[0].Objects[0].Object.Raw[0] != &later.Spec.Phases[0].Objects[0].Object.Raw[0] {
		t.Error("the states of a set have objects each")
	}
	second.Annotations["probe"] = "x"
	if first.Annotations["probe"] != "x" {
		t.Error("the history of a deployment has annotations each")
	}
	if len(r.kin) != 2 {
		t.Errorf("%d examples are known of one owner's sets, want that of history and the active one", len(r.kin))
	}
	if err := r.Replace(nil, "20"); err != nil || len(r.kin) != 0 {
		t.Errorf("%d examples are known of no sets: %v", len(r.kin), err)
	}
}

// BenchmarkSetMemory says how many bytes a relay holds for a set: of history, and of
// one with 10 objects of 280 bytes.
func BenchmarkSetMemory(b *testing.B) {
	for name, archived := range map[string]bool{"archived": true, "active": false} {
		b.Run(name, func(b *testing.B) {
			const deployments, revisions = 200, 10
			texts := make([]string, 0, deployments*revisions)
			for d := range deployments {
				for n := range revisions {
					app := fmt.Sprintf("shop-%d", d)
					if !archived {
						app = fmt.Sprintf("shop-%d-%d", d, n)
					}
					texts = append(texts, setJSON(app, n, 10, archived))
				}
			}
			for range b.N {
				r := newRelay(nil, &corev1alpha1.ObjectSet{}, nil)
				before := live()
				for _, text := range texts {
					set := decodeSet(b, text)
					o, name, err := named(set)
					if err != nil {
						b.Fatal(err)
					}
					r.known[name] = r.slim(o, nil)
				}
				b.ReportMetric(float64(live()-before)/float64(len(texts)), "B/set")
				runtime.KeepAlive(r)
			}
		})
	}
}

// live returns how many bytes are reachable.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
