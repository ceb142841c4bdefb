package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// patience is how long a test waits for what has to happen.
const patience = 30 * time.Second

// namespace makes a namespace named after the test.
func namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("Test", "", "/", "-", "_", "-", " ", "-").Replace(t.Name()))
	env.Namespace(t, name)
	return name
}

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

// set returns an ObjectSet that stands alone.
func set(namespace, name string, revision int64, phases ...corev1alpha1.ObjectSetTemplatePhase) *corev1alpha1.ObjectSet {
	s := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.Spec.Revision, s.Spec.Phases = revision, phases
	return s
}

// await reads obj again and again until check returns nil.
func await[T client.Object](t *testing.T, obj T, what string, check func(T) error) T {
	t.Helper()
	var last error
	harness.Eventually(t, patience, fmt.Sprintf("%T %s %s", obj, obj.GetName(), what), func(ctx context.Context) error {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if ctx.Err() != nil {
			return last // more telling than that time is up
		}
		if last = err; err == nil {
			last = check(obj)
		}
		return last
	})
	return obj
}

// reports checks a condition of the present generation.
func reports(obj corev1alpha1.Conditioned, typ string, status metav1.ConditionStatus, reason string, texts ...string) error {
	c := meta.FindStatusCondition(*obj.StatusConditions(), typ)
	if c == nil || c.Status != status || reason != "" && c.Reason != reason || c.ObservedGeneration != obj.GetGeneration() {
		return fmt.Errorf("generation %d has no condition %s=%s/%s; the conditions are %+v", obj.GetGeneration(), typ, status, reason, *obj.StatusConditions())
	}
	for _, text := range texts {
		if !strings.Contains(c.Message, text) {
			return fmt.Errorf("condition %s says %q, which lacks %q", typ, c.Message, text)
		}
	}
	return nil
}

// awaitRollout waits until the deployment's present template is rolled out.
func awaitRollout(t *testing.T, dep *corev1alpha1.ObjectDeployment) *corev1alpha1.ObjectDeployment {
	t.Helper()
	return await(t, dep, "to be rolled out", func(d *corev1alpha1.ObjectDeployment) error {
		return errors.Join(
			reports(d, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""),
			reports(d, corev1alpha1.ConditionProgressing, metav1.ConditionFalse, corev1alpha1.ReasonIdle))
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
	must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(dep), dep))
	before := dep.DeepCopy()
	f(dep)
	must(t, env.Client.Patch(t.Context(), dep, client.MergeFrom(before)))
}

func get(t *testing.T, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{}
	must(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, cm))
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
	must(t, env.Client.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("someone")))
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

// journal reads what the manager asked of the API server.
type journal struct {
	audit *sandbox.Audit
	from  sandbox.Position
}

func begin(t *testing.T) *journal {
	t.Helper()
	audit, err := env.Audit()
	must(t, err)
	from, err := audit.Mark(t.Context())
	must(t, err)
	return &journal{audit, from}
}

// requests are those of the manager about a namespace since begin, watches apart.
func (j *journal) requests(t *testing.T, namespace string, filters ...sandbox.Filter) []sandbox.Entry {
	t.Helper()
	filters = append(filters, sandbox.ByUser(harness.ManagerUser()), inNamespace(namespace), sandbox.Not(sandbox.ByVerb("watch")))
	entries, err := j.audit.Since(t.Context(), j.from, filters...)
	must(t, err)
	return entries
}

// rest waits until the manager has let the namespace be for a while, so that
// statuses which it held back are counted, too.
func (j *journal) rest(t *testing.T, namespace string) {
	t.Helper()
	j.quiet(t, namespace, 2*time.Second)
}

func (j *journal) quiet(t *testing.T, namespace string, long time.Duration) {
	t.Helper()
	_, err := j.audit.Settled(t.Context(), j.from, long, sandbox.ByUser(harness.ManagerUser()), inNamespace(namespace))
	must(t, err)
}

// settle waits until the manager has said all that it has to say of what was done in
// the namespace: events wait while it works on other tests' namespaces.
func settle(t *testing.T, namespace string) {
	t.Helper()
	begin(t).quiet(t, namespace, 2*time.Second)
}

func inNamespace(name string) sandbox.Filter {
	return func(e sandbox.Entry) bool { return e.Object.Namespace == name }
}

func named(name string) sandbox.Filter {
	return func(e sandbox.Entry) bool { return e.Object.Name == name }
}

// lines shows requests in a failure.
func lines(entries []sandbox.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "\n  %s %s (%d)", e.Verb, e.RequestURI, e.Code)
	}
	return b.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
