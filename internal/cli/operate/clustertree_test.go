package operate

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/drift"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

func liveObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = utiljson.Unmarshal(data, &u.Object) // with integers, as a client reads them
	}
	require.NoError(t, err)
	return u
}

// The newest revision is found by its owner rather than by its name. Objects in slices are
// included. Each object has its health in the cluster.
func TestClusterTree(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Revised(nil)...)
	r, err := c.Rollout(t.Context(), cluster.Name{Name: "web"})
	require.NoError(t, err)
	r.Package.PackageStatus().CurrentVersion = "1.1.0"
	set := r.Current()
	set.ObjectSetSpec().Phases = append(set.ObjectSetSpec().Phases,
		clustertest.PhaseOf("late", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"gone\u001b"}}`, `{"apiVersion":"x.example.com/v1","kind":"Odd","metadata":{"name":"odd"}}`,
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"done"}}`, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"changed"}}`),
		corev1alpha1.ObjectSetTemplatePhase{Name: "sealed", SecretSlices: []string{"x"}})
	set.ObjectSetStatus().Phases = []corev1alpha1.PhaseStatus{{Name: "deploy", State: "Probing"}}
	set.ObjectSetStatus().Blocking = []corev1alpha1.BlockingObject{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Message: "no replicas"}}
	wanted, sealed, err := c.Objects(t.Context(), set)
	if err != nil || !sealed || len(wanted) != 6 {
		t.Fatalf("%v, sealed %t, %d objects", err, sealed, len(wanted))
	}
	runs := map[objects.Key]phases.Run{}
	for _, o := range wanted {
		if o.Key.Name == "done" {
			runs[o.Key] = phases.Run{Content: drift.ContentDigest(apinames.Default, o.Value), Outcome: objects.Succeeded}
			o.Key.Name = "changed"
			runs[o.Key] = phases.Run{Content: drift.ContentDigest(apinames.Default, o.Value), Outcome: objects.Succeeded}
		}
	}
	r.Deployment.ObjectDeploymentStatus().Jobs = objectsets.Records(runs)
	owner := "ownerReferences: [{apiVersion: package-operator.run/v1alpha1, kind: ObjectDeployment, name: web, uid: dep, controller: true}]"
	live := map[objects.Key]*unstructured.Unstructured{
		{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}: liveObject(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, generation: 1, "+owner+"}\nspec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 1, updatedReplicas: 1}"),
		{Kind: "Secret", Namespace: "shop", Name: "s"}:                      liveObject(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: "+clustertest.SecretValue+"}"),
	}
	tree := treeOf(r, set, wanted, live, map[schema.GroupKind]string{{Group: "x.example.com", Kind: "Odd"}: "the cluster does not serve this kind"})
	want := `web 1.1.0
Package shop/web  revision 2
├── Phase config  Waiting
├── Phase deploy  Probing
│   ├── apps/v1, Kind=Deployment shop/web  InProgress
│   │       no replicas
│   └── /v1, Kind=Secret shop/s  Current
│           controlled by nobody, not by this package
├── Phase late  Waiting
│   ├── /v1, Kind=Service shop/gone\u001b  NotFound
│   ├── x.example.com/v1, Kind=Odd shop/odd  Unknown
│   │       the cluster does not serve this kind
│   ├── batch/v1, Kind=Job shop/done  Current
│   │       completed earlier, and does not run again
│   └── batch/v1, Kind=Job shop/changed  NotFound
└── Phase sealed  Waiting
    (objects with sensitive values are not shown)
`
	got := tree.draw(terminal.Plain())
	require.Equal(t, want, got)
	if strings.Contains(got, clustertest.SecretValue) {
		t.Error("the value of a Secret is shown")
	}
}

func TestHealthOfADeletedObject(t *testing.T) {
	t.Parallel()
	u := liveObject(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}")
	u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Other", Name: "b", UID: "u"}})
	if state, message := health(u, "", nil); state != "Terminating" || message != "controlled by nobody, not by this package" {
		t.Errorf("%s, %s", state, message)
	}
}

// Objects follow the screen in the format of clustertree. Programs get them only on request.
func TestStatusWithObjects(t *testing.T) {
	t.Parallel()
	o := progress.ScreenOptions{Styles: terminal.Plain()}
	r := statusReport{Report: progress.Report{Kind: "Package", Namespace: "shop", Name: "web", Summary: summary.Stalled}}
	plain := r.text(o)
	if data, err := json.Marshal(r); err != nil || strings.Contains(string(data), `"objects"`) {
		t.Errorf("got %s, %v", data, err)
	}
	r.Objects = &clusterTree{Kind: "Package", Namespace: "shop", Name: "web", Revision: 3, Phases: []treePhase{{Name: "deploy"}}}
	want := plain + "\n" + r.Objects.draw(o.Styles)
	if got := r.text(o); got != want || !strings.Contains(got, "deploy") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	data, err := json.Marshal(r)
	var read struct {
		Summary string
		Objects clusterTree
	}
	if err != nil || json.Unmarshal(data, &read) != nil || read.Summary != "Stalled" || read.Objects.Revision != 3 {
		t.Errorf("got %s, %v", data, err)
	}
}
