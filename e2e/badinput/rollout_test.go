package badinput_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// rolloutRows returns valid packages, each with an obstacle in the cluster.
func rolloutRows() []row {
	return []row{
		{
			name:  "an object with a foreign controller",
			files: phased(map[string]string{"one": never("free"), "two": never("taken")}),
			setup: taken, condition: "Available", status: "False", reason: "ObjectSetUnready",
			texts: []string{"never-taken", "is controlled by ConfigMap their-owner", "leave it out here, or rename it"}, blocking: "ConfigMap never-taken",
		},
		{
			name:      "unknown kind",
			files:     phased(map[string]string{"one": harness.ConfigMap("first-phase", "one", "v1"), "two": widget + "---\n" + harness.ConfigMap("beside", "two", "v1"), "three": harness.ConfigMap("later", "three", "v1")}),
			condition: "Available", status: "False", reason: "ObjectSetUnready",
			texts:    []string{"badinput.lockstep.run/v1 Widget", "Widget. Install its CustomResourceDefinition, or bring it in an earlier phase"},
			blocking: "Widget widget", after: bringWidgets,
		},
		{
			name: "a probe that never comes true",
			files: withProbe(phased(map[string]string{"one": harness.ConfigMap("first-phase", "one", "v1"), "two": never("later")}),
				"  availabilityProbes:\n  - selector: {kind: {group: \"\", kind: ConfigMap}}\n    probes:\n    - cel: {rule: 'has(self.data.ready)', message: the field ready is missing}\n"),
			condition: "Available", status: "False", reason: "ObjectSetUnready",
			texts: []string{`"one"`, "first-phase", "the field ready is missing"}, blocking: "ConfigMap first-phase",
		},
		{
			name:  "two packages that bring the same object",
			files: phased(map[string]string{"one": harness.ConfigMap("second-own", "one", "v1"), "two": harness.ConfigMap("both", "two", "second")}),
			setup: winner, condition: "Available", status: "False", reason: "ObjectSetUnready",
			texts: []string{"ConfigMap", "both", "belongs to ObjectDeployment", "winner", "leave it out here"}, blocking: "ConfigMap both",
			after: removeWinner,
		},
	}
}

// phased returns a package with a phase for each text, in the order one, two,
// three; the texts' own phases are replaced.
func phased(phases map[string]string) harness.Files {
	files := harness.Files{}
	var names []string
	for _, name := range []string{"one", "two", "three"} {
		if text, ok := phases[name]; ok {
			names = append(names, name)
			files[name+".yaml"] = strings.ReplaceAll(text, "package-operator.run/phase: deploy", "package-operator.run/phase: "+name)
		}
	}
	files["manifest.yaml"] = harness.Manifest("bad", names, "")
	return files
}

func withProbe(files harness.Files, probe string) harness.Files {
	files["manifest.yaml"] += probe
	return files
}

// taken makes an object with another controller.
func taken(t *testing.T, env *harness.Env, ns string) {
	t.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "their-owner"}}
	env.Create(t, owner)
	env.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "never-taken", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true),
	}}}})
}

const widget = "apiVersion: badinput.lockstep.run/v1\nkind: Widget\nmetadata:\n  name: widget\n  annotations: {package-operator.run/phase: deploy}\nspec: {size: 1}\n"

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.badinput.lockstep.run}
spec:
  group: badinput.lockstep.run
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

// bringWidgets checks that the phases before the unknown kind were rolled out,
// and that the phase starts when its API appears.
func bringWidgets(t *testing.T, env *harness.Env, ns string) {
	t.Helper()
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "first-phase"}, &corev1.ConfigMap{}))
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(widgetCRD), crd))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		require.NoError(t, client.IgnoreNotFound(env.Client.Delete(ctx, crd)))
	})
	begin := time.Now()
	env.Create(t, crd)
	env.WaitAvailable(t, ns, "bad")
	t.Logf("Available %s after its API was created", time.Since(begin).Round(10*time.Millisecond))
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("badinput.lockstep.run/v1")
	obj.SetKind("Widget")
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "widget"}, obj))
}

// winner installs a package with an object that the bad package contains, too.
func winner(t *testing.T, env *harness.Env, ns string) {
	t.Helper()
	files := phased(map[string]string{"one": harness.ConfigMap("first-own", "one", "v1") + "---\n" + harness.ConfigMap("both", "one", "first")})
	env.Create(t, harness.Package(ns, "winner", env.Push(t, "winner:1", files)))
	env.WaitAvailable(t, ns, "winner")
}

// removeWinner checks that the loser continues after the winner was deleted.
func removeWinner(t *testing.T, env *harness.Env, ns string) {
	t.Helper()
	both := &corev1.ConfigMap{}
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "both"}, both))
	if both.Data["value"] != "first" {
		t.Errorf("the loser wrote the object: %v", both.Data)
	}
	require.NoError(t, env.Client.Delete(t.Context(), harness.Package(ns, "winner", "")))
	env.WaitAvailable(t, ns, "bad")
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "both"}, both))
	if both.Data["value"] != "second" {
		t.Errorf("the object was not taken over: %v", both.Data)
	}
	env.WaitGone(t, patience, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "first-own"}})
}
