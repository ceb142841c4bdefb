package crash_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// stage is a part of the life of a package.
type stage struct {
	name string
	// begin starts it in a namespace; the end is a state.
	begin func(t *testing.T, s *scenario, namespace string)
	// changes are the objects that the stage creates or changes, and removes those
	// that it deletes.
	changes, removes []string
	// paused tells that the package is paused at the end.
	paused bool
	// drift tells that objects are changed by others, and put back.
	drift bool
	// sets is how many revisions the stage makes.
	sets int
}

// scenario is the life of a package: four phases, of which each is gated by an
// object that an operator makes ready. The first two versions need slices; the
// third one raises the version and needs none, while history still has some, and
// drops an object that is to be kept.
type scenario struct {
	env    *harness.Env
	images [4]string
	stages []stage
}

const (
	phaseCount = 4
	keptName   = "kept-01"
)

func newScenario(t *testing.T, env *harness.Env) *scenario {
	t.Helper()
	s := &scenario{env: env}
	v1 := version{number: "1.0.0", values: map[string]string{}, absent: []string{"shop-03-009"}, big: true}
	v2 := version{number: "1.0.0", values: map[string]string{"shop-01-000": "v2", "gate-02": "v2", "big-01": "v2"}, absent: []string{"shop-03-002"}, big: true}
	v3 := version{number: "1.1.0", values: map[string]string{"shop-00-000": "v3", "gate-02": "v2", "shop-01-000": "v2"}, absent: []string{"shop-03-002"}}
	for i, v := range []version{v1, v2, v3} {
		s.images[i+1] = env.Push(t, fmt.Sprintf("shop:v%d", i+1), v.files())
	}
	s.stages = []stage{
		{name: "install", begin: install, changes: v1.names(), sets: 1},
		{name: "drift", begin: drift, drift: true},
		{name: "pause", begin: pause(true), paused: true},
		{name: "resume", begin: resume, drift: true},
		{name: "upgrade", begin: upgrade(2), changes: []string{"shop-01-000", "gate-02", "big-01", "shop-03-009"}, removes: []string{"shop-03-002"}, sets: 1},
		{name: "release", begin: upgrade(3), changes: []string{"shop-00-000"}, removes: []string{"big-00", "big-01", "big-02", "big-03"}, sets: 1},
		{name: "delete", begin: remove, removes: v3.names()},
	}
	return s
}

// version is one version of the package.
type version struct {
	number string
	values map[string]string
	absent []string
	big    bool
}

// names returns the names of the version's objects, each with its phase.
func (v version) names() []string {
	var names []string
	for p := range phaseCount {
		all := []string{fmt.Sprintf("gate-%02d", p)}
		for _, i := range []int{0, 1, 2, 9} {
			all = append(all, fmt.Sprintf("shop-%02d-%03d", p, i))
		}
		if v.big {
			all = append(all, fmt.Sprintf("big-%02d", p))
		}
		if v.big && p == 1 {
			all = append(all, keptName)
		}
		for _, name := range all {
			if (!strings.HasSuffix(name, "-009") || p == phaseCount-1) && !slices.Contains(v.absent, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (v version) files() harness.Files {
	docs := map[string][]string{}
	for _, name := range v.names() {
		value := v.values[name]
		if value == "" {
			value = "v1"
		}
		phase := fmt.Sprintf("phase-%02d", phaseOf(name))
		doc := harness.ConfigMap(name, phase, value)
		switch {
		case strings.HasPrefix(name, "gate-"):
			doc = strings.Replace(doc, "  annotations:", "  labels: {gated: \"true\"}\n  annotations:", 1)
		case name == keptName:
			doc = strings.Replace(doc, "  annotations:\n", "  annotations:\n    package-operator.run/deletion-policy: Keep\n", 1)
		case strings.HasPrefix(name, "big-"):
			doc += fmt.Sprintf("  big: %q\n", strings.Repeat(name+" ", 4000))
		}
		docs[phase] = append(docs[phase], doc)
	}
	files := harness.Files{}
	var phases []string
	for p := range phaseCount {
		phase := fmt.Sprintf("phase-%02d", p)
		phases = append(phases, phase)
		files[phase+".yaml"] = strings.Join(docs[phase], "---\n")
	}
	files["manifest.yaml"] = harness.Manifest("shop", phases, "  version: "+v.number+`
  availabilityProbes:
  - selector: {kind: {group: "", kind: ConfigMap}, selector: {matchLabels: {gated: "true"}}}
    probes:
    - cel: {rule: 'has(self.data.ready) && self.data.ready == self.data.value', message: "the operator has not seen it"}
`)
	return files
}

// phaseOf returns the phase in names such as shop-03-007 and gate-03.
func phaseOf(name string) int {
	phase := -1
	if _, rest, ok := strings.Cut(name, "-"); ok {
		_, _ = fmt.Sscanf(rest, "%d", &phase)
	}
	return phase
}

func install(t *testing.T, s *scenario, ns string) {
	pkg := harness.Package(ns, "shop", s.images[1])
	pkg.Spec.RevisionHistoryLimit = ptr.To(int32(1))
	s.env.Create(t, pkg)
}

func upgrade(version int) func(*testing.T, *scenario, string) {
	return func(t *testing.T, s *scenario, ns string) { s.env.SetImage(t, ns, "shop", s.images[version]) }
}

func pause(paused bool) func(*testing.T, *scenario, string) {
	return func(t *testing.T, s *scenario, ns string) {
		patch := fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused)
		check(t, s.env.Client.Patch(t.Context(), harness.Package(ns, "shop", ""), client.RawPatch(types.MergePatchType, patch)))
	}
}

// resume ends a pause in which objects drifted.
func resume(t *testing.T, s *scenario, ns string) {
	drift(t, s, ns)
	pause(false)(t, s, ns)
}

func remove(t *testing.T, s *scenario, ns string) {
	check(t, s.env.Client.Delete(t.Context(), harness.Package(ns, "shop", "")))
}

// drift changes objects in every way.
func drift(t *testing.T, s *scenario, ns string) {
	for name, patch := range map[string]string{
		"shop-00-001": `{"data":{"value":"drifted"}}`,
		"shop-01-001": `{"data":{"text":null}}`,
		"shop-02-001": fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, corev1alpha1.CacheLabel),
		"shop-03-001": `{"metadata":{"labels":{"package-operator.run/package":"another"}}}`,
		"shop-01-002": `{"metadata":{"ownerReferences":null}}`,
		"big-02":      `{"data":{"big":"small"}}`,
	} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		check(t, s.env.Client.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("someone")))
	}
	for _, name := range []string{"shop-00-002", "shop-02-002", "gate-01"} {
		check(t, s.env.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}))
	}
}

const operatorUser = "operator"

// operate runs the operator that makes gates ready: it copies their value, as a
// controller reports the generation that it has seen.
func operate(t *testing.T, env *harness.Env) {
	t.Helper()
	config, err := env.User(operatorUser, "system:masters")
	check(t, err)
	clients, err := kubernetes.NewForConfig(config)
	check(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			w, err := clients.CoreV1().ConfigMaps("").Watch(ctx, metav1.ListOptions{LabelSelector: "gated=true"})
			if err != nil {
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
				continue
			}
			for event := range w.ResultChan() {
				if cm, ok := event.Object.(*corev1.ConfigMap); ok && event.Type != watch.Deleted {
					ready(ctx, clients, cm)
				}
			}
		}
	}()
}

func ready(ctx context.Context, clients kubernetes.Interface, cm *corev1.ConfigMap) {
	if cm.DeletionTimestamp != nil || cm.Data["ready"] == cm.Data["value"] {
		return
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"data":{"ready":%q}}`, cm.UID, cm.Data["value"])
	// A failure shows as a phase that never opens.
	_, _ = clients.CoreV1().ConfigMaps(cm.Namespace).Patch(ctx, cm.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: operatorUser})
}
