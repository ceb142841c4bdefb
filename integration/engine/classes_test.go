package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// classed returns a phase of a class that the manager does not serve.
func classed(name string, objects ...corev1alpha1.ObjectSetObject) corev1alpha1.ObjectSetTemplatePhase {
	p := phase(name, objects...)
	p.Class = corev1alpha1.PhaseClassHostedCluster
	return p
}

// agentOf waits for an ObjectSetPhase, and puts the finalizer of an agent on it.
func agentOf(t *testing.T, ns, name string) *corev1alpha1.ObjectSetPhase {
	t.Helper()
	p := await(t, &corev1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}, "to be made", func(*corev1alpha1.ObjectSetPhase) error { return nil })
	return harness.Edit(t, env, p, func(p *corev1alpha1.ObjectSetPhase) { p.Finalizers = []string{corev1alpha1.CachedFinalizer} })
}

// reports writes the status of an ObjectSetPhase as an agent does.
func reports(t *testing.T, p *corev1alpha1.ObjectSetPhase, available bool, message string) {
	t.Helper()
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	before := p.DeepCopy()
	status := func(is bool) metav1.ConditionStatus {
		if is {
			return metav1.ConditionTrue
		}
		return metav1.ConditionFalse
	}
	p.Status.Conditions = []metav1.Condition{{
		Type: corev1alpha1.ConditionAvailable, Status: status(available), Reason: "Reported", Message: message, ObservedGeneration: p.Generation, LastTransitionTime: metav1.Now(),
	}, {
		Type: "my-prefix/Ready", Status: status(available), Reason: "Mapped", ObservedGeneration: p.Generation, LastTransitionTime: metav1.Now(),
	}}
	if p.Spec.Paused {
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{
			Type: corev1alpha1.ConditionPaused, Status: metav1.ConditionTrue, Reason: "Paused", ObservedGeneration: p.Generation, LastTransitionTime: metav1.Now(),
		})
	}
	p.Status.ControllerOf = nil
	for range p.Spec.Objects {
		p.Status.ControllerOf = append(p.Status.ControllerOf, corev1alpha1.ControlledObjectReference{Kind: "ConfigMap", Name: "there", Namespace: "elsewhere"})
	}
	require.NoError(t, env.Client.Status().Patch(t.Context(), p, client.MergeFrom(before)))
}

// lets waits until an ObjectSetPhase is being deleted, and removes the finalizer as its agent does.
func lets(t *testing.T, p *corev1alpha1.ObjectSetPhase) {
	t.Helper()
	await(t, p, "to be deleted", func(p *corev1alpha1.ObjectSetPhase) error {
		if p.DeletionTimestamp == nil {
			return errors.New("it is not")
		}
		return nil
	})
	before := p.DeepCopy()
	p.Finalizers = nil
	patch(t, before, p)
	env.WaitGone(t, patience, p)
}

// setOfRevision returns the set of the newest revision.
func setOfRevision(t *testing.T, dep *corev1alpha1.ObjectDeployment, number int64) *corev1alpha1.ObjectSet {
	t.Helper()
	await(t, dep, fmt.Sprintf("to have revision %d", number), func(d *corev1alpha1.ObjectDeployment) error {
		if d.Status.Revision != number {
			return fmt.Errorf("it has revision %d", d.Status.Revision)
		}
		return nil
	})
	refs := dep.Status.ControllerOf
	s := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: dep.Namespace, Name: refs[len(refs)-1].Name}}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(s), s))
	return s
}

// A phase with a class is an ObjectSetPhase, in order with the other phases; its agent reports
// on its status, is paused with the package, and is awaited in a teardown.
func TestClassPhase(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := deployment(ns, phase("first", configMap("first", "v1")), classed("remote", configMap("there", "v1")), phase("last", configMap("last", "v1")))
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{{
		Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ConfigMap"}},
		Probes:   []corev1alpha1.Probe{{CEL: &corev1alpha1.ProbeCELSpec{Rule: `has(self.data)`, Message: "no data"}}},
	}}
	env.Create(t, dep)
	set := setOfRevision(t, dep, 1)
	remote := agentOf(t, ns, set.Name+"-remote")
	isOnTheWire(t, set, remote)
	await(t, set, "to wait for the agent", func(s *corev1alpha1.ObjectSet) error {
		return harness.HasCondition(s, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonProbeFailure,
			`Phase "remote" failed: `, `no status reported by the agent of class "hosted-cluster"`)
	})
	reports(t, remote, false, "Phase \"remote\" failed: ConfigMap there:\nno data")
	await(t, set, "to repeat the agent", func(s *corev1alpha1.ObjectSet) error {
		return harness.HasCondition(s, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonProbeFailure, "ConfigMap there: no data")
	})
	absent(t, ns, "last")
	reports(t, remote, true, "")
	awaitRollout(t, dep)
	await(t, set, "to report the agent's state", func(s *corev1alpha1.ObjectSet) error {
		want := []corev1alpha1.RemotePhaseReference{{Name: remote.Name, UID: remote.UID}}
		if diff := cmp.Diff(want, s.Status.RemotePhases); diff != "" {
			return errors.New(diff)
		}
		names := []string{}
		for _, ref := range s.Status.ControllerOf {
			names = append(names, ref.Name)
		}
		if diff := cmp.Diff([]string{"first", "there", "last"}, names); diff != "" {
			return errors.New(diff)
		}
		return harness.HasCondition(s, "my-prefix/Ready", metav1.ConditionTrue, "Mapped")
	})
	env.Settle(t, ns)
	j := env.Journal(t)
	j.Silent(t, ns)

	t.Log("pause")
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = true })
	await(t, remote, "to be paused", func(p *corev1alpha1.ObjectSetPhase) error { return pausedIs(p, true) })
	await(t, set, "to wait for the agent", func(s *corev1alpha1.ObjectSet) error {
		return harness.HasCondition(s, corev1alpha1.ConditionPaused, metav1.ConditionUnknown, corev1alpha1.ReasonPartiallyPaused)
	})
	reports(t, remote, true, "")
	await(t, set, "to be paused", func(s *corev1alpha1.ObjectSet) error {
		return harness.HasCondition(s, corev1alpha1.ConditionPaused, metav1.ConditionTrue, corev1alpha1.ReasonPaused)
	})
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = false })
	await(t, remote, "to go on", func(p *corev1alpha1.ObjectSetPhase) error { return pausedIs(p, false) })
	reports(t, remote, true, "")
	awaitRollout(t, dep)

	t.Log("edited and deleted by hand")
	harness.Edit(t, env, remote, func(p *corev1alpha1.ObjectSetPhase) {
		p.Spec.Paused = true
		delete(p.Labels, corev1alpha1.PhaseClassLabel)
	})
	await(t, remote, "to be restored", func(p *corev1alpha1.ObjectSetPhase) error {
		if p.Labels[corev1alpha1.PhaseClassLabel] == "" {
			return errors.New("it has no class")
		}
		return pausedIs(p, false)
	})
	former := remote.UID
	require.NoError(t, env.Client.Delete(t.Context(), remote))
	lets(t, remote)
	remote = agentOf(t, ns, set.Name+"-remote")
	if remote.UID == former {
		t.Error("it is the same")
	}
	reports(t, remote, true, "")
	awaitRollout(t, dep)

	t.Log("upgrade")
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases[1].Objects[0] = configMap("there", "v2")
	})
	newer := agentOf(t, ns, setOfRevision(t, dep, 2).Name+"-remote")
	if newer.Spec.Revision != 2 || len(newer.Spec.Previous) != 1 || newer.Spec.Previous[0].Name != set.Name {
		t.Errorf("the new one is %+v", newer.Spec)
	}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(remote), remote))
	if remote.DeletionTimestamp != nil {
		t.Error("the former ObjectSetPhase went before the new one was available")
	}
	reports(t, newer, true, "")
	lets(t, remote)
	awaitRollout(t, dep)
	await(t, set, "to be archived", func(s *corev1alpha1.ObjectSet) error {
		if len(s.Status.RemotePhases) > 0 {
			return errors.New("it has ObjectSetPhases")
		}
		return harness.HasCondition(s, corev1alpha1.ConditionArchived, metav1.ConditionTrue, corev1alpha1.ReasonArchived)
	})

	t.Log("teardown")
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	await(t, dep, "to wait for the agent", func(d *corev1alpha1.ObjectDeployment) error {
		if b := d.Status.Blocking; len(b) != 1 || b[0].Name != newer.Name || !strings.Contains(b[0].Message, `the agent of class "hosted-cluster" removes`) {
			return fmt.Errorf("it waits for %+v", b)
		}
		return nil
	})
	absent(t, ns, "last")
	get(t, ns, "first")
	lets(t, newer)
	env.WaitGone(t, patience, dep)
	absent(t, ns, "first")
}

func pausedIs(p *corev1alpha1.ObjectSetPhase, want bool) error {
	if p.Spec.Paused != want {
		return fmt.Errorf("paused is %t", p.Spec.Paused)
	}
	return nil
}

// isOnTheWire checks that an ObjectSetPhase is as Package Operator makes them.
func isOnTheWire(t *testing.T, set *corev1alpha1.ObjectSet, p *corev1alpha1.ObjectSetPhase) {
	t.Helper()
	labels := map[string]string{"app": "shop", corev1alpha1.ObjectDeploymentLabel: "shop", corev1alpha1.PhaseClassLabel: "hosted-cluster"}
	require.Equal(t, labels, p.Labels)
	owners := []metav1.OwnerReference{{APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectSet", Name: set.Name, UID: set.UID, Controller: ptr.To(true)}}
	require.Equal(t, owners, p.OwnerReferences)
	if hash := p.Annotations[corev1alpha1.HashAnnotation]; hash == "" || hash != set.Annotations[corev1alpha1.HashAnnotation] || len(p.Annotations) != 1 {
		t.Errorf("the annotations are %v", p.Annotations)
	}
	spec := corev1alpha1.ObjectSetPhaseSpec{Revision: 1, AvailabilityProbes: set.Spec.AvailabilityProbes, Objects: set.Spec.Phases[1].Objects}
	require.Equal(t, spec, p.Spec)
}

// ofPackageOperator creates a set with the ObjectSetPhases that Package Operator makes for it.
func ofPackageOperator(t *testing.T, owner *corev1alpha1.ObjectSet) (made []*corev1alpha1.ObjectSetPhase) {
	t.Helper()
	owner.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStatePaused
	owner.Finalizers = []string{corev1alpha1.CachedFinalizer}
	env.Create(t, owner)
	for _, p := range owner.Spec.Phases {
		one := &corev1alpha1.ObjectSetPhase{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: owner.Namespace, Name: owner.Name + "-" + p.Name, Finalizers: []string{corev1alpha1.CachedFinalizer},
				Labels: map[string]string{corev1alpha1.PhaseClassLabel: p.Class},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectSet", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
				}},
			},
			Spec: corev1alpha1.ObjectSetPhaseSpec{Revision: 1, Objects: p.Objects},
		}
		require.NoError(t, env.Client.Create(t.Context(), one, client.FieldOwner("package-operator-manager")))
		reports(t, one, true, "")
		made = append(made, one)
	}
	harness.Edit(t, env, owner, func(s *corev1alpha1.ObjectSet) { s.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateActive })
	return made
}

// The engine takes over Package Operator's ObjectSetPhases unchanged, and tears them down in
// reverse.
func TestClassPhasesOfPackageOperator(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	owner := set(ns, "shop-1", 1, classed("one", configMap("there", "v1")), classed("two", configMap("there-too", "v1")))
	j := env.Journal(t)
	made := ofPackageOperator(t, owner)
	await(t, owner, "to be available", available)
	if writes := slices.DeleteFunc(j.Rest(t, ns), func(e sandbox.Entry) bool {
		return !strings.HasSuffix(e.Object.Resource, "objectsetphases") || !sandbox.Writes()(e)
	}); len(writes) > 0 {
		t.Errorf("ObjectSetPhases were written:%s", harness.Lines(writes))
	}
	harness.Edit(t, env, owner, func(s *corev1alpha1.ObjectSet) { s.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived })
	lets(t, made[1])
	await(t, made[0], "to be deleted after the later phase", func(p *corev1alpha1.ObjectSetPhase) error {
		if p.DeletionTimestamp == nil {
			return errors.New("it is not")
		}
		return nil
	})
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(owner), owner))
	if err := harness.HasCondition(owner, corev1alpha1.ConditionArchived, metav1.ConditionTrue, ""); err == nil {
		t.Error("it was archived before the agent was done")
	}
	lets(t, made[0])
	await(t, owner, "to be archived", func(s *corev1alpha1.ObjectSet) error {
		return harness.HasCondition(s, corev1alpha1.ConditionArchived, metav1.ConditionTrue, corev1alpha1.ReasonArchived)
	})
}

// endOrphaning removes the finalizer of an orphaning deletion, as the garbage collector does, while
// the manager removes its own.
func endOrphaning(t *testing.T, owner *corev1alpha1.ObjectSet) {
	t.Helper()
	harness.Eventually(t, patience, "the orphaning deletion to end", func(ctx context.Context) error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil {
			return client.IgnoreNotFound(err)
		}
		before := owner.DeepCopy()
		owner.Finalizers = slices.DeleteFunc(owner.Finalizers, func(f string) bool { return f == metav1.FinalizerOrphanDependents })
		return client.IgnoreNotFound(env.Client.Patch(ctx, owner, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
	})
}

// The manager writes ObjectSetPhases itself, and their objects as the set's account, even after
// the set was deleted. So an account does not gain rights by orphaning.
func TestOrphanedClassPhaseKeepsItsAccount(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	writer := account(t, ns, "writer", allVerbs...)
	owner := set(ns, "shop-1", 1, here("local", configMap("object", "v1")))
	owner.Spec.ServiceAccountName = "writer"
	j := env.Journal(t)
	env.Create(t, owner)
	await(t, owner, "to be available", available)
	p := &corev1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop-1-local"}}
	require.NoError(t, env.Client.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	await(t, owner, "to be known as orphaned", func(s *corev1alpha1.ObjectSet) error {
		if s.Annotations[corev1alpha1.OrphanedAnnotation] != "true" {
			return errors.New("it is not")
		}
		return nil
	})
	harness.Edit(t, env, p, func(p *corev1alpha1.ObjectSetPhase) { p.OwnerReferences = nil })
	endOrphaning(t, owner)
	env.WaitGone(t, patience, owner)
	edit(t, ns, "object", `{"data":{"value":"theirs"}}`)
	awaitValue(t, ns, "object", "v1")
	require.NoError(t, env.Client.Delete(t.Context(), p))
	env.WaitGone(t, patience, p)
	absent(t, ns, "object")
	writes := j.Requests(t, ns, attempts(), sandbox.ByResource("configmaps"))
	if wrong := notAs(writes, writer); len(writes) < 3 || len(wrong) > 0 {
		t.Errorf("%d writes, and not as the account:%s", len(writes), harness.Lines(wrong))
	}
}

// here returns a phase of the class that the manager serves.
func here(name string, objects ...corev1alpha1.ObjectSetObject) corev1alpha1.ObjectSetTemplatePhase {
	p := phase(name, objects...)
	p.Class = corev1alpha1.PhaseClassDefault
	return p
}

// controllerOf returns the kind of a ConfigMap's controller.
func controllerOf(t *testing.T, ns, name string) string {
	t.Helper()
	if ref := metav1.GetControllerOf(get(t, ns, name)); ref != nil {
		return ref.Kind
	}
	return ""
}

// Phases of the class that the manager serves follow the same rules as those without one:
// order, drift, hand-over also between both kinds of phases, and teardown.
func TestClassDefault(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := deployment(ns,
		phase("first", configMap("first", "v1"), configMap("to-agent", "v1")),
		here("local", configMap("local", "v1"), configMap("from-agent", "v1"), configMap("dropped", "v1")),
		phase("last", configMap("last", "v1")))
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{readyProbe}
	env.Create(t, dep)
	for _, names := range [][]string{{"first", "to-agent"}, {"local", "from-agent", "dropped"}, {"last"}} {
		for _, name := range names {
			awaitValue(t, ns, name, "v1")
		}
		if names[0] != "last" {
			absent(t, ns, "last")
		}
		for _, name := range names {
			edit(t, ns, name, `{"data":{"ready":"true"}}`)
		}
	}
	awaitRollout(t, dep)
	if kind := controllerOf(t, ns, "local"); kind != "ObjectSetPhase" {
		t.Errorf("local is controlled by %q", kind)
	}
	edit(t, ns, "local", `{"data":{"value":"drifted"}}`)
	awaitValue(t, ns, "local", "v1")
	env.Settle(t, ns)

	t.Log("upgrade")
	before := map[string]types.UID{}
	for _, name := range []string{"first", "to-agent", "local", "from-agent", "last"} {
		before[name] = get(t, ns, name).UID
	}
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{
			phase("first", configMap("first", "v1"), configMap("from-agent", "v2")),
			here("local", configMap("local", "v2"), configMap("to-agent", "v2"), configMap("late", "v2")),
			phase("last", configMap("last", "v1")),
		}
	})
	for _, name := range []string{"local", "to-agent", "late"} {
		awaitValue(t, ns, name, "v2")
	}
	env.Settle(t, ns)
	if kind := controllerOf(t, ns, "to-agent"); kind != "ObjectSetPhase" {
		t.Errorf("while the agent waits, to-agent is controlled by %q", kind)
	}
	edit(t, ns, "late", `{"data":{"ready":"true"}}`)
	awaitRollout(t, dep)
	set := setOfRevision(t, dep, 2)
	await(t, dep, "to remove the dropped object", func(*corev1alpha1.ObjectDeployment) error {
		return gone(t.Context(), &corev1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: set.Spec.Previous[0].Name + "-local"}})
	})
	absent(t, ns, "dropped")
	env.Settle(t, ns)
	for name, uid := range before {
		if cm := get(t, ns, name); cm.UID != uid || cm.DeletionTimestamp != nil {
			t.Errorf("%s did not survive", name)
		}
	}
	want := map[string]string{"first": "ObjectDeployment", "from-agent": "ObjectDeployment", "local": "ObjectSetPhase", "to-agent": "ObjectSetPhase"}
	for name, kind := range want {
		if got := controllerOf(t, ns, name); got != kind {
			t.Errorf("%s is controlled by %q, want %q", name, got, kind)
		}
	}
	env.Journal(t).Silent(t, ns)

	t.Log("teardown")
	j := env.Journal(t)
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	env.WaitGone(t, patience, dep)
	var order []string
	for _, e := range j.Requests(t, ns, sandbox.ByVerb("delete")) {
		if r := e.Object.Resource; r == "configmaps" || r == "objectsetphases" {
			order = append(order, e.Object.Name)
		}
	}
	if at := func(name string) int { return slices.Index(order, name) }; len(order) != 7 || at("last") != 0 || at(set.Name+"-local") != 1 ||
		at("local") < 2 || at("to-agent") < 2 || at("late") < 2 || at("first") < 5 || at("from-agent") < 5 {
		t.Errorf("the order is %v", order)
	}
}
