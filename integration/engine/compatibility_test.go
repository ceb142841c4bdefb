package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// objectSet is an ObjectSet as a user of Package Operator writes it.
const objectSet = `
apiVersion: package-operator.run/v1alpha1
kind: ObjectSet
metadata:
  name: nginx-v1
  labels: {app.kubernetes.io/name: nginx}
spec:
  lifecycleState: Active
  revision: 1
  successDelaySeconds: 0
  phases:
  - name: configure
    objects:
    - object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: nginx, labels: {app.kubernetes.io/name: nginx}}
        data: {index.html: hello}
  - name: deploy
    objects:
    - collisionProtection: IfNoController
      conditionMappings:
      - {sourceType: Available, destinationType: my-prefix/Available}
      object:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: nginx, labels: {app.kubernetes.io/name: nginx}}
        spec:
          replicas: 2
          selector: {matchLabels: {app.kubernetes.io/name: nginx}}
          template:
            metadata: {labels: {app.kubernetes.io/name: nginx}}
            spec: {containers: [{name: nginx, image: "nginx:1.14.2", ports: [{containerPort: 80}]}]}
  availabilityProbes:
  - probes:
    - condition: {type: Available, status: "True"}
    - fieldsEqual: {fieldA: .status.updatedReplicas, fieldB: .status.replicas}
    selector:
      kind: {group: apps, kind: Deployment}
  - probes:
    - cel: {rule: 'has(self.data) && "index.html" in self.data', message: no index.html}
    selector:
      kind: {group: "", kind: ConfigMap}
      selector: {matchLabels: {app.kubernetes.io/name: nginx}}
`

// An ObjectSet that was written for Package Operator is rolled out, reports the
// same conditions, maps conditions, is archived and deleted as there.
func TestObjectSetOfPackageOperator(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	obj := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(objectSet), obj))
	obj.SetNamespace(ns)
	env.Create(t, obj)
	nginx := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "nginx-v1"}}
	await(t, nginx, "to name the probe", func(s *corev1alpha1.ObjectSet) error {
		return harness.HasCondition(s, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonProbeFailure,
			`Phase "deploy" failed: `, "apps Deployment "+ns+"/nginx: missing .status.conditions")
	})

	web := &appsv1.Deployment{}
	must(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "nginx"}, web))
	before := web.DeepCopy()
	web.Status = appsv1.DeploymentStatus{
		ObservedGeneration: web.Generation, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2, ReadyReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", Message: "2 replicas"}},
	}
	must(t, env.Client.Status().Patch(t.Context(), web, client.MergeFrom(before)))
	await(t, nginx, "to be available", func(s *corev1alpha1.ObjectSet) error {
		return errors.Join(available(s),
			harness.HasCondition(s, corev1alpha1.ConditionSucceeded, metav1.ConditionTrue, corev1alpha1.ReasonRolloutSuccess),
			harness.HasCondition(s, "my-prefix/Available", metav1.ConditionTrue, "MinimumReplicasAvailable", "2 replicas"))
	})
	if nginx.Status.Revision != 1 || len(nginx.Status.ControllerOf) != 2 || nginx.Status.ControllerOf[0].Kind != "ConfigMap" || nginx.Status.ControllerOf[1].Kind != "Deployment" {
		t.Errorf("the status is %+v", nginx.Status)
	}
	before2 := nginx.DeepCopy()
	nginx.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
	patch(t, before2, nginx)
	await(t, nginx, "to be archived", func(s *corev1alpha1.ObjectSet) error {
		err := harness.HasCondition(s, corev1alpha1.ConditionArchived, metav1.ConditionTrue, corev1alpha1.ReasonArchived)
		if err == nil && len(s.Status.ControllerOf) != 0 {
			err = fmt.Errorf("it controls %v", s.Status.ControllerOf)
		}
		return err
	})
	absent(t, ns, "nginx")
	env.WaitGone(t, patience, web)
	must(t, env.Client.Delete(t.Context(), nginx))
	env.WaitGone(t, patience, nginx)
}

// Probes name the object and what it lacks in the words of Package Operator. What
// is not known comes before what is false.
func TestMessagesOfProbes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason string
		probes []corev1alpha1.Probe
		want   string
	}{
		{"false ones are listed", []corev1alpha1.Probe{
			{FieldsEqual: &corev1alpha1.ProbeFieldsEqualSpec{FieldA: ".data.value", FieldB: ".data.other"}},
			{CEL: &corev1alpha1.ProbeCELSpec{Rule: "false", Message: "never true"}},
		}, `".data.other" missing, never true`},
		{"unknown ones come first", []corev1alpha1.Probe{
			{Condition: &corev1alpha1.ProbeConditionSpec{Type: "Ready", Status: "True"}},
			{CEL: &corev1alpha1.ProbeCELSpec{Rule: "false", Message: "never true"}},
		}, "missing .status.conditions"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			ns := env.TestNamespace(t)
			alone := set(ns, "alone", 1, phase("deploy", configMap("object", "v1")))
			alone.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{{
				Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ConfigMap"}}, Probes: row.probes,
			}}
			env.Create(t, alone)
			await(t, alone, "to say what is missing", func(s *corev1alpha1.ObjectSet) error {
				return harness.HasCondition(s, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonProbeFailure,
					`Phase "deploy" failed: ConfigMap `+ns+"/object: "+row.want)
			})
		})
	}
}

// classed gives the phases of a template the classes of Package Operator.
func classed(phases []corev1alpha1.ObjectSetTemplatePhase) {
	phases[0].Class, phases[1].Class = corev1alpha1.PhaseClassDefault, corev1alpha1.PhaseClassHostedCluster
}

// classPhases creates the ObjectSetPhases that Package Operator creates for a set.
func classPhases(t *testing.T, owner *corev1alpha1.ObjectSet) (local, remote *corev1alpha1.ObjectSetPhase) {
	t.Helper()
	var made []*corev1alpha1.ObjectSetPhase
	for _, p := range owner.Spec.Phases {
		made = append(made, &corev1alpha1.ObjectSetPhase{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: owner.Namespace, Name: owner.Name + "-" + p.Name, Finalizers: []string{corev1alpha1.CachedFinalizer},
				Labels: map[string]string{corev1alpha1.PhaseClassLabel: p.Class},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectSet", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true),
				}},
			},
			Spec: corev1alpha1.ObjectSetPhaseSpec{Revision: 1, Objects: p.Objects},
		})
		env.Create(t, made[len(made)-1])
	}
	return made[0], made[1]
}

// archived checks that a set is archived.
func archived(s *corev1alpha1.ObjectSet) error {
	return harness.HasCondition(s, corev1alpha1.ConditionArchived, metav1.ConditionTrue, corev1alpha1.ReasonArchived)
}

// release waits until the ObjectSetPhase of an agent is being deleted, and removes its
// finalizer as the agent does. Its set waits for that.
func release(t *testing.T, remote *corev1alpha1.ObjectSetPhase, owner *corev1alpha1.ObjectSet) {
	t.Helper()
	await(t, remote, "to be deleted", func(p *corev1alpha1.ObjectSetPhase) error {
		if p.DeletionTimestamp == nil || len(p.Finalizers) != 1 {
			return fmt.Errorf("the agent finds %+v", p.ObjectMeta)
		}
		return nil
	})
	must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(owner), owner))
	if owner.DeletionTimestamp == nil && archived(owner) == nil {
		t.Errorf("%s was archived before the agent was done", owner.Name)
	}
	before := remote.DeepCopy()
	remote.Finalizers = nil
	patch(t, before, remote)
}

// Teardown of a revision of Package Operator releases the ObjectSetPhases of class default
// and waits for the agents of the others.
func TestTeardownOfClassPhases(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	owner := set(ns, "shop-1", 1, phase("local", configMap("here", "v1")), phase("remote", configMap("there", "v1")))
	classed(owner.Spec.Phases)
	owner.Finalizers = []string{corev1alpha1.CachedFinalizer}
	env.Create(t, owner)
	local, remote := classPhases(t, owner)
	must(t, env.Client.Delete(t.Context(), owner))
	await(t, owner, "to wait for the agent", func(s *corev1alpha1.ObjectSet) error {
		if b := s.Status.Blocking; len(b) != 1 || b[0].Name != "shop-1-remote" || !strings.Contains(b[0].Message, `the agent of the class "hosted-cluster"`) {
			return fmt.Errorf("it waits for %+v", b)
		}
		return nil
	})
	release(t, remote, owner)
	env.WaitGone(t, patience, local)
	env.WaitGone(t, patience, owner)
}

// Archival of a lone set and of a revision waits for the ObjectSetPhases, as does the
// deletion of a revision.
func TestArchivalOfClassPhases(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	alone := set(ns, "alone", 1, phase("local", configMap("here", "v1")), phase("remote", configMap("there", "v1")))
	classed(alone.Spec.Phases)
	env.Create(t, alone)
	local, remote := classPhases(t, alone)
	must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(alone), alone))
	before := alone.DeepCopy()
	alone.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
	patch(t, before, alone)
	release(t, remote, alone)
	env.WaitGone(t, patience, local)
	await(t, alone, "to be archived", archived)

	dep := deployment(ns, phase("local", configMap("first", "v1")), phase("remote", configMap("second", "v1")))
	classed(dep.Spec.Template.Spec.Phases)
	env.Create(t, dep)
	// current returns the set of the newest revision, with its ObjectSetPhases.
	current := func(number int64) (set *corev1alpha1.ObjectSet, local, remote *corev1alpha1.ObjectSetPhase) {
		await(t, dep, "to have another revision", func(d *corev1alpha1.ObjectDeployment) error {
			if d.Status.Revision != number {
				return fmt.Errorf("it has revision %d", d.Status.Revision)
			}
			return nil
		})
		refs := dep.Status.ControllerOf
		set = &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: refs[len(refs)-1].Name}}
		must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		local, remote = classPhases(t, set)
		return set, local, remote
	}
	deleted, local, remote := current(1)
	must(t, env.Client.Delete(t.Context(), deleted))
	release(t, remote, deleted)
	env.WaitGone(t, patience, local)
	env.WaitGone(t, patience, deleted)

	older, local, remote := current(2)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("local", configMap("first", "v1"))}
	})
	release(t, remote, older)
	env.WaitGone(t, patience, local)
	await(t, older, "to be archived", archived)
}
