package transport_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/faults/invariants"
	"lockstep.run/lockstep/e2e/harness"
)

// stage is a part of the life of a package.
type stage struct {
	name string
	// start starts it in a namespace. It ends with a state.
	start func(ctx context.Context, s *scenario, namespace string) error
	// from and to are the versions before and after it; nil for none.
	from, to *version
	// paused means that the package is paused at the end.
	paused bool
	// drift means that other clients change objects, and the engine reverts them.
	drift bool
	// sets is how many revisions the stage makes.
	sets int
}

// changes reports whether the stage creates or changes an object.
func (s *stage) changes(name string) bool {
	if s.to == nil || s.from == s.to {
		return false
	}
	to, stays := s.to.contents()[name]
	if s.from == nil || !stays {
		return stays
	}
	from, had := s.from.contents()[name]
	return !had || from != to
}

// scenario is the life of a package with four phases. An operator makes the gate of each
// phase ready. The first two versions need slices. The third does not, while the history
// still has some; it drops an object that has to be kept.
type scenario struct {
	env *harness.Env
	// there is the cluster of the objects; nil if it is the manager's own.
	there  *target
	images [4]string
	stages []*stage
}

const (
	phaseCount = 4
	keptName   = "kept-01"
	// secretPrefix is the prefix of Secrets that contain values of other Secrets. The
	// engine stores such objects in Secrets.
	secretPrefix = "secret-"
)

func newScenario(t *testing.T, env *harness.Env) *scenario {
	t.Helper()
	s := &scenario{env: env}
	v1 := &version{number: "1.0.0", values: map[string]string{}, absent: []string{"shop-03-009"}, big: true}
	v2 := &version{number: "1.0.0", values: map[string]string{"shop-01-000": "v2", "gate-02": "v2", "big-01": "v2", "secret-01": "v2"}, absent: []string{"shop-03-002"}, big: true}
	v3 := &version{number: "1.1.0", values: map[string]string{"shop-00-000": "v3", "gate-02": "v2", "shop-01-000": "v2"}, absent: []string{"shop-03-002"}}
	for i, v := range []*version{v1, v2, v3} {
		s.images[i+1] = env.Push(t, fmt.Sprintf("shop:v%d", i+1), v.files())
	}
	s.stages = []*stage{
		{name: "install", start: install, to: v1, sets: 1},
		{name: "drift", start: drift, from: v1, to: v1, drift: true},
		{name: "pause", start: pause(true), from: v1, to: v1, paused: true},
		{name: "resume", start: resume, from: v1, to: v1, drift: true},
		{name: "upgrade", start: upgrade(2), from: v1, to: v2, sets: 1},
		{name: "release", start: upgrade(3), from: v2, to: v3, sets: 1},
		{name: "delete", start: remove, from: v3},
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
func (v *version) names() []string {
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
			all = append(all, keptName, secretPrefix+"01")
		}
		for _, name := range all {
			if (!strings.HasSuffix(name, "-009") || p == phaseCount-1) && !slices.Contains(v.absent, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// contents returns the desired content of each of the version's objects.
func (v *version) contents() map[string]string {
	contents := map[string]string{}
	for _, name := range v.names() {
		contents[name] = "v1"
		if value := v.values[name]; value != "" {
			contents[name] = value
		}
	}
	return contents
}

// content returns the version's content for the judges.
func (v *version) content(namespace string) invariants.Content {
	if v == nil {
		return nil
	}
	c := invariants.Content{}
	for name, value := range v.contents() {
		object := invariants.ConfigMap(namespace, name)
		if strings.HasPrefix(name, secretPrefix) {
			object = invariants.Secret(namespace, name)
		}
		c[object] = invariants.Place{Phase: phaseOf(name), Content: value, Keep: name == keptName}
	}
	return c
}

func (v *version) files() harness.Files {
	docs := map[string][]string{}
	contents := v.contents()
	for _, name := range v.names() {
		value := contents[name]
		phase := fmt.Sprintf("phase-%02d", phaseOf(name))
		doc := harness.ConfigMap(name, phase, value)
		switch {
		case strings.HasPrefix(name, "gate-"):
			doc = strings.Replace(doc, "  annotations:", "  labels: {gated: \"true\"}\n  annotations:", 1)
		case name == keptName:
			doc = strings.Replace(doc, "  annotations:\n", "  annotations:\n    package-operator.run/deletion-policy: Keep\n", 1)
		case strings.HasPrefix(name, secretPrefix):
			doc = fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: %s\n  annotations: {package-operator.run/phase: %s}\nstringData: {value: %q, password: {{ .config.password | quote }}}\n", name, phase, value)
			docs["secrets"] = append(docs["secrets"], doc)
			continue
		case strings.HasPrefix(name, "big-"):
			doc += fmt.Sprintf("  big: %q\n", strings.Repeat(name+" ", 2600))
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
	if len(docs["secrets"]) > 0 {
		files["secrets.yaml.gotmpl"] = strings.Join(docs["secrets"], "---\n")
	}
	files["manifest.yaml"] = harness.Manifest("shop", phases, "  version: "+v.number+`
  config: {openAPIV3Schema: {type: object, properties: {password: {type: string}}}}
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

func install(ctx context.Context, s *scenario, ns string) error {
	pkg := harness.Package(ns, "shop", s.images[1])
	pkg.Spec.RevisionHistoryLimit = ptr.To(int32(1))
	pkg.Spec.ConfigFrom = []corev1alpha1.ValueSource{{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: "input", Key: "config"}}}
	input := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "input"}, StringData: map[string]string{"config": "password: correct-horse-battery\n"}}
	if err := s.env.Client.Create(ctx, input); err != nil {
		return err
	}
	if err := s.there.use(ctx, s.env.Client, pkg); err != nil {
		return err
	}
	return s.env.Client.Create(ctx, pkg)
}

// objects is the client for objects of packages.
func (s *scenario) objects() client.Client {
	if s.there != nil {
		return s.there.Client
	}
	return s.env.Client
}

func upgrade(version int) func(context.Context, *scenario, string) error {
	return func(ctx context.Context, s *scenario, ns string) error {
		return s.patch(ctx, ns, fmt.Sprintf(`{"spec":{"image":%q}}`, s.images[version]))
	}
}

func pause(paused bool) func(context.Context, *scenario, string) error {
	return func(ctx context.Context, s *scenario, ns string) error {
		return s.patch(ctx, ns, fmt.Sprintf(`{"spec":{"paused":%t}}`, paused))
	}
}

func (s *scenario) patch(ctx context.Context, ns, patch string) error {
	return s.env.Client.Patch(ctx, harness.Package(ns, "shop", ""), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// resume ends a pause after objects drifted.
func resume(ctx context.Context, s *scenario, ns string) error {
	if err := drift(ctx, s, ns); err != nil {
		return err
	}
	return pause(false)(ctx, s, ns)
}

func remove(ctx context.Context, s *scenario, ns string) error {
	return s.env.Client.Delete(ctx, harness.Package(ns, "shop", ""))
}

// drift changes objects in every way.
func drift(ctx context.Context, s *scenario, ns string) error {
	for _, change := range []struct{ name, patch string }{
		{"shop-00-001", `{"data":{"value":"drifted"}}`},
		{"shop-01-001", `{"data":{"text":null}}`},
		{"shop-02-001", fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, corev1alpha1.CacheLabel)},
		{"shop-03-001", `{"metadata":{"labels":{"package-operator.run/package":"another"}}}`},
		{"shop-01-002", fmt.Sprintf(`{"metadata":{"ownerReferences":null,"annotations":{%q:null}}}`, corev1alpha1.OwnersAnnotation)},
		{"big-02", `{"data":{"big":"small"}}`},
	} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: change.name}}
		if err := s.objects().Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(change.patch)), client.FieldOwner("someone")); err != nil {
			return err
		}
	}
	for _, name := range []string{"shop-00-002", "shop-02-002", "gate-01"} {
		if err := s.objects().Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}); err != nil {
			return err
		}
	}
	return nil
}
