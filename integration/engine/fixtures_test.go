package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// patience is how long a test waits for a condition.
var patience = harness.Patience

// raw returns an object of a template from JSON.
func raw(text string) corev1alpha1.ObjectSetObject {
	var obj corev1alpha1.ObjectSetObject
	obj.Object.Raw = []byte(text)
	return obj
}

// configMap is an object of a template.
func configMap(name, value string, change ...func(*corev1alpha1.ObjectSetObject)) corev1alpha1.ObjectSetObject {
	obj := raw(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"app":"shop"}},"data":{"value":%q}}`, name, value))
	for _, f := range change {
		f(&obj)
	}
	return obj
}

func collision(mode corev1alpha1.CollisionProtection) func(*corev1alpha1.ObjectSetObject) {
	return func(o *corev1alpha1.ObjectSetObject) { o.CollisionProtection = mode }
}

// kept marks an object to be released instead of deleted.
func kept(o *corev1alpha1.ObjectSetObject) {
	annotations := fmt.Sprintf(`"metadata":{"annotations":{%q:%q},`, corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep)
	o.Object.Raw = []byte(strings.Replace(string(o.Object.Raw), `"metadata":{`, annotations, 1))
}

func phase(name string, objects ...corev1alpha1.ObjectSetObject) corev1alpha1.ObjectSetTemplatePhase {
	return corev1alpha1.ObjectSetTemplatePhase{Name: name, Objects: objects}
}

// readyProbe asks each ConfigMap for a value under the key ready.
var readyProbe = corev1alpha1.ObjectSetProbe{
	Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ConfigMap"}},
	Probes: []corev1alpha1.Probe{{CEL: &corev1alpha1.ProbeCELSpec{
		Rule: `has(self.data.ready) && self.data.ready == "true"`, Message: "not ready yet",
	}}},
}

// deployment returns an ObjectDeployment named shop.
func deployment(namespace string, phases ...corev1alpha1.ObjectSetTemplatePhase) *corev1alpha1.ObjectDeployment {
	labels := map[string]string{"app": "shop"}
	return &corev1alpha1.ObjectDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
		Spec: corev1alpha1.ObjectDeploymentSpec{
			Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: corev1alpha1.ObjectSetTemplate{
				Metadata: metav1.ObjectMeta{Labels: labels},
				Spec:     corev1alpha1.ObjectSetTemplateSpec{Phases: phases},
			},
		},
	}
}

// set returns an ObjectSet without a deployment.
func set(namespace, name string, revision int64, phases ...corev1alpha1.ObjectSetTemplatePhase) *corev1alpha1.ObjectSet {
	s := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.Spec.Revision, s.Spec.Phases = revision, phases
	return s
}

// awaitRollout waits until the deployment's present template is rolled out.
func awaitRollout(t *testing.T, dep *corev1alpha1.ObjectDeployment) *corev1alpha1.ObjectDeployment {
	t.Helper()
	return await(t, dep, "to be rolled out", func(d *corev1alpha1.ObjectDeployment) error {
		return errors.Join(
			harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""),
			harness.HasCondition(d, corev1alpha1.ConditionProgressing, metav1.ConditionFalse, corev1alpha1.ReasonIdle))
	})
}

// install creates the deployment and waits until it is rolled out.
func install(t *testing.T, dep *corev1alpha1.ObjectDeployment) *corev1alpha1.ObjectDeployment {
	t.Helper()
	env.Create(t, dep)
	return awaitRollout(t, dep)
}

// change changes the deployment as a user does.
func change(t *testing.T, dep *corev1alpha1.ObjectDeployment, f func(*corev1alpha1.ObjectDeployment)) {
	t.Helper()
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(dep), dep))
	before := dep.DeepCopy()
	f(dep)
	require.NoError(t, env.Client.Patch(t.Context(), dep, client.MergeFrom(before)))
}

func get(t *testing.T, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{}
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, cm))
	return cm
}

func absent(t *testing.T, namespace, name string) {
	t.Helper()
	err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("ConfigMap %s should not exist: %v", name, err)
	}
}

// edit sends a merge patch as another field manager.
func edit(t *testing.T, namespace, name, patch string) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	require.NoError(t, env.Client.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("someone")))
	return cm
}

// value waits until a ConfigMap has the value, and returns it.
func awaitValue(t *testing.T, namespace, name, value string) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return await(t, cm, "to have the value "+value, func(cm *corev1.ConfigMap) error {
		if cm.Data["value"] != value || cm.DeletionTimestamp != nil {
			return fmt.Errorf("it has %v", cm.Data)
		}
		return nil
	})
}

func named(name string) sandbox.Filter {
	return func(e sandbox.Entry) bool { return e.Object.Name == name }
}

// await reads obj again and again until check returns nil.
func await[T client.Object](t *testing.T, obj T, what string, check func(T) error) T {
	t.Helper()
	return harness.Await(t, env, patience, obj, what, check)
}

// collect ends the deletion of an object in the foreground.
func collect(t *testing.T, obj client.Object) {
	t.Helper()
	harness.Collect(t, env.Client, obj)
}

// workload returns a Deployment without spec.replicas.
func workload(name string) corev1alpha1.ObjectSetObject {
	return raw(fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%[1]q},"spec":{"selector":{"matchLabels":{"app":%[1]q}},`+
		`"template":{"metadata":{"labels":{"app":%[1]q}},"spec":{"containers":[{"name":"main","image":"example.com/main:1"}]}}}}`, name))
}
