package objecttemplates_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// Drift is corrected, fields that left the template are removed from the object, and other
// clients' fields stay.
func TestDrift(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	tmpl := template(t, ns, "t", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\ndata: {value: a, more: b}\n")
	awaitReady(t, tmpl)
	out := awaitValue(t, ns, "out", "a")
	change(t, out, func(o *corev1.ConfigMap) { o.Data["value"], o.Data["theirs"] = "drift", "kept" })
	out = awaitValue(t, ns, "out", "a")
	if out.Data["theirs"] != "kept" {
		t.Errorf("another client's field was removed: %v", out.Data)
	}
	require.NoError(t, env.Client.Delete(t.Context(), out))
	awaitValue(t, ns, "out", "a")
	change(t, tmpl, func(o *corev1alpha1.ObjectTemplate) {
		o.Spec.Template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\ndata: {value: c}\n"
	})
	if out = awaitValue(t, ns, "out", "c"); out.Data["more"] != "" {
		t.Errorf("what left the template stays: %v", out.Data)
	}
}

// An object that the template does not control is not touched.
func TestCollision(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	theirs := configMap(t, ns, "out", map[string]string{"value": "theirs"})
	tmpl := template(t, ns, "t", rendering("out", `"ours"`))
	awaitCondition(t, tmpl, corev1alpha1.ConditionStalled, metav1.ConditionTrue, corev1alpha1.ReasonCollisionDetected, "exists already and nothing controls it")
	if tmpl.Status.ControllerOf != nil {
		t.Errorf("controllerOf is %+v", tmpl.Status.ControllerOf)
	}
	require.NoError(t, env.Client.Get(t.Context(), keyOf(theirs), theirs))
	if theirs.Data["value"] != "theirs" || len(theirs.OwnerReferences) > 0 {
		t.Errorf("the object was changed: %+v", theirs)
	}

	// It does not keep another owner away from an object that it cannot have.
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "dep"}}
	dep.Spec.Selector.MatchLabels = map[string]string{"app": "dep"}
	dep.Spec.Template.Metadata.Labels = dep.Spec.Selector.MatchLabels
	object := corev1alpha1.ObjectSetObject{CollisionProtection: corev1alpha1.CollisionProtectionIfNoController}
	object.Object.Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"out"},"data":{"value":"adopted"}}`)
	dep.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Objects: []corev1alpha1.ObjectSetObject{object}}}
	env.Create(t, dep)
	awaitValue(t, ns, "out", "adopted")
	awaitCondition(t, tmpl, corev1alpha1.ConditionStalled, metav1.ConditionTrue, corev1alpha1.ReasonCollisionDetected, "belongs to ObjectDeployment "+ns+"/dep")

	// If the other owner is deleted along with the object, the template creates it.
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	awaitValue(t, ns, "out", "ours")
	awaitReady(t, tmpl)

	// If two templates write the same object, the first one has it until it is deleted.
	first := template(t, ns, "first", rendering("both", `"first"`))
	awaitReady(t, first)
	second := template(t, ns, "second", rendering("both", `"second"`))
	awaitCondition(t, second, corev1alpha1.ConditionStalled, metav1.ConditionTrue, corev1alpha1.ReasonCollisionDetected, "ObjectTemplate "+ns+"/first")
	require.NoError(t, env.Client.Delete(t.Context(), first))
	awaitValue(t, ns, "both", "second")
	awaitReady(t, second)
}

// If the name or the kind changes, the former object is deleted after the new one exists.
func TestRename(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	tmpl := template(t, ns, "t", rendering("one", `"v"`))
	awaitReady(t, tmpl)
	// While the new object cannot be written, the former one stays.
	theirs := configMap(t, ns, "two", nil)
	change(t, tmpl, func(o *corev1alpha1.ObjectTemplate) { o.Spec.Template = rendering("two", `"v"`) })
	awaitCondition(t, tmpl, corev1alpha1.ConditionReady, metav1.ConditionFalse, corev1alpha1.ReasonCollisionDetected)
	awaitValue(t, ns, "one", "v")
	require.NoError(t, env.Client.Delete(t.Context(), theirs))
	change(t, tmpl, func(o *corev1alpha1.ObjectTemplate) {
		o.Spec.Template = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: three}\n"
	})
	awaitGone(t, named(ns, "one"))
	awaitReady(t, tmpl)
	if ref := tmpl.Status.ControllerOf; ref == nil || ref.Kind != "ServiceAccount" || ref.Name != "three" {
		t.Errorf("controllerOf is %+v", ref)
	}
}

// The object is deleted before its template. It stays if the deletion orphans dependents, or if
// the object has the policy Keep.
func TestDeletion(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	gone, orphan := template(t, ns, "gone", rendering("gone", `"v"`)), template(t, ns, "orphan", rendering("orphan", `"v"`))
	kept := template(t, ns, "kept", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {package-operator.run/deletion-policy: Keep}}\ndata: {value: v}\n")
	for _, tmpl := range []*corev1alpha1.ObjectTemplate{gone, orphan, kept} {
		awaitReady(t, tmpl)
	}
	require.NoError(t, env.Client.Delete(t.Context(), gone))
	require.NoError(t, env.Client.Delete(t.Context(), orphan, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	require.NoError(t, env.Client.Delete(t.Context(), kept))
	for _, tmpl := range []*corev1alpha1.ObjectTemplate{gone, orphan, kept} {
		awaitGone(t, tmpl)
	}
	absent(t, named(ns, "gone"))
	for _, name := range []string{"orphan", "kept"} {
		if left := awaitValue(t, ns, name, "v"); len(left.OwnerReferences) > 0 {
			t.Errorf("%s has owners: %+v", name, left.OwnerReferences)
		}
	}
}

// Namespaced templates stay in their namespace; cluster-scoped ones can use any namespace.
func TestScopes(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	configMap(t, ns, "from", map[string]string{"v": "x"})
	awaitCondition(t, template(t, ns, "other-object", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}"),
		invalid, metav1.ConditionTrue, corev1alpha1.ReasonSourceError, "is in another namespace")
	from := source("v1", "ConfigMap", "from", "data.v=.v")
	cluster := &corev1alpha1.ClusterObjectTemplate{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	cluster.Spec.Template = "{apiVersion: v1, kind: Namespace, metadata: {name: " + ns + "-made, labels: {v: '{{ .config.v }}'}}}"
	cluster.Spec.Sources = []corev1alpha1.ObjectTemplateSource{from}
	require.NoError(t, env.Client.Create(t.Context(), cluster))
	awaitCondition(t, cluster, invalid, metav1.ConditionTrue, corev1alpha1.ReasonSourceError, "namespace: it is required")
	change(t, cluster, func(o *corev1alpha1.ClusterObjectTemplate) { o.Spec.Sources[0].Namespace = ns })
	awaitReady(t, cluster)
	made := &corev1.Namespace{}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Name: ns + "-made"}, made))
	if made.Labels["v"] != "x" {
		t.Errorf("the Namespace has %v", made.Labels)
	}
	require.NoError(t, env.Client.Delete(t.Context(), cluster))
	awaitGone(t, cluster)
}

// A template is an object of a package like any other. A later phase waits until the rendered
// object exists, and the deletion of a phase waits until it is removed.
func TestInDeployment(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	object := func(text string) []corev1alpha1.ObjectSetObject {
		var o corev1alpha1.ObjectSetObject
		o.Object.Raw = []byte(text)
		return []corev1alpha1.ObjectSetObject{o}
	}
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop"}}
	dep.Spec.Selector.MatchLabels = map[string]string{"app": "shop"}
	dep.Spec.Template.Metadata.Labels = dep.Spec.Selector.MatchLabels
	dep.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{
		{Name: "from", Objects: object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"from"},"data":{"v":"a"}}`)},
		{Name: "render", Objects: object(`{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectTemplate","metadata":{"name":"t"},"spec":{
			"template":"{apiVersion: v1, kind: ConfigMap, metadata: {name: out}, data: {value: '{{ .config.v }} {{ .environment.kubernetes.version | trunc 2 }}'}}",
			"sources":[{"apiVersion":"v1","kind":"ConfigMap","name":"from","items":[{"key":"data.v","destination":".v"}]},
				{"apiVersion":"v1","kind":"ConfigMap","name":"late","items":[]}]}}`)},
		{Name: "after", Objects: object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"after"}}`)},
	}
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{{
		Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Group: corev1alpha1.GroupName, Kind: "ObjectTemplate"}},
		Probes:   []corev1alpha1.Probe{{Condition: &corev1alpha1.ProbeConditionSpec{Type: corev1alpha1.ConditionReady, Status: "True"}}},
	}}
	require.NoError(t, env.Client.Create(t.Context(), dep))
	tmpl := &corev1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "t"}}
	eventually(t, "the template to be there", func() error { return env.Client.Get(t.Context(), keyOf(tmpl), tmpl) })
	awaitCondition(t, tmpl, invalid, metav1.ConditionTrue, corev1alpha1.ReasonSourceError, "late does not exist")
	absent(t, named(ns, "after"))
	configMap(t, ns, "late", nil)
	awaitValue(t, ns, "out", "a v1")
	eventually(t, "the deployment to be available", func() error {
		if err := env.Client.Get(t.Context(), keyOf(dep), dep); err != nil {
			return err
		}
		return harness.HasCondition(dep, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, "")
	})

	held := named(ns, "out")
	change(t, held, func(o *corev1.ConfigMap) { o.Finalizers = []string{"example.com/hold"} })
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	awaitCondition(t, tmpl, corev1alpha1.ConditionReady, metav1.ConditionFalse, corev1alpha1.ReasonTearingDown, "example.com/hold")
	require.NoError(t, env.Client.Get(t.Context(), keyOf(named(ns, "from")), named(ns, "from")))
	change(t, held, func(o *corev1.ConfigMap) { o.Finalizers = nil })
	awaitGone(t, dep)
	for _, name := range []string{"from", "out", "after"} {
		absent(t, named(ns, name))
	}
}
