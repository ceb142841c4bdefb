package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/objects/objectslices"
	"lockstep.run/lockstep/test/require"
)

// gated returns a deployment that probes every object.
func gated(ns string, phases ...corev1alpha1.ObjectSetTemplatePhase) *corev1alpha1.ObjectDeployment {
	dep := deployment(ns, phases...)
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{readyProbe}
	return dep
}

const (
	makeReady   = `{"data":{"ready":"true"}}`
	makeUnready = `{"data":{"ready":"false"}}`
)

// awaitPhases waits until the only set reports the phases in these states. The
// first phase has an object of its name.
func awaitPhases(t *testing.T, dep *corev1alpha1.ObjectDeployment, states ...corev1alpha1.PhaseState) {
	t.Helper()
	awaitValue(t, dep.Namespace, dep.Spec.Template.Spec.Phases[0].Name, "v1")
	await(t, currentSet(t, dep), fmt.Sprintf("to have the phases %v", states), func(s *corev1alpha1.ObjectSet) error {
		var got []corev1alpha1.PhaseState
		for _, phase := range s.Status.Phases {
			got = append(got, phase.State)
		}
		if !slices.Equal(got, states) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}

// A phase waits until all previous phases are ready at the same time, not only the one before it
// (invariant 1).
func TestGateWaitsForEveryPhaseBefore(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := gated(ns, phase("one", configMap("one", "v1")), phase("two", configMap("two", "v1")), phase("three", configMap("three", "v1")))
	env.Create(t, dep)
	awaitPhases(t, dep, corev1alpha1.PhaseStateProbing, corev1alpha1.PhaseStateWaiting, corev1alpha1.PhaseStateWaiting)
	edit(t, ns, "one", makeReady)
	awaitPhases(t, dep, corev1alpha1.PhaseStateReady, corev1alpha1.PhaseStateProbing, corev1alpha1.PhaseStateWaiting)
	edit(t, ns, "one", makeUnready)
	awaitPhases(t, dep, corev1alpha1.PhaseStateUnready, corev1alpha1.PhaseStateProbing, corev1alpha1.PhaseStateWaiting)
	j := env.Journal(t)
	edit(t, ns, "two", makeReady)
	j.Rest(t, ns)
	if writes := j.Requests(t, ns, named("three"), sandbox.Writes()); len(writes) > 0 {
		t.Fatalf("phase three was written while phase one was not ready:%s", harness.Lines(writes))
	}
	awaitPhases(t, dep, corev1alpha1.PhaseStateUnready, corev1alpha1.PhaseStateReady, corev1alpha1.PhaseStateWaiting)
	edit(t, ns, "one", makeReady)
	awaitValue(t, ns, "three", "v1")
}

// An upgrade skips phases that are ready and need no writes. One status records all of them
// before the first write in a later phase. A phase whose probes fail is not skipped (invariant 1).
func TestUpgradePassesOverWhatIsReady(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	names := []string{"one", "two", "three", "four"}
	var all []corev1alpha1.ObjectSetTemplatePhase
	for _, name := range names {
		all = append(all, phase(name, configMap(name, "v1")))
	}
	dep := gated(ns, all...)
	env.Create(t, dep)
	for _, name := range names {
		awaitValue(t, ns, name, "v1")
		edit(t, ns, name, makeReady)
	}
	awaitRollout(t, dep)

	next := func(value string) {
		change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
			d.Spec.Template.Spec.Phases[3].Objects[0] = configMap("four", value)
		})
	}
	j := env.Journal(t)
	next("v2")
	awaitRollout(t, dep)
	awaitValue(t, ns, "four", "v2")
	j.Rest(t, ns)
	written := j.Requests(t, ns, named("four"), sandbox.Writes())
	newest := slices.MaxFunc(setsOf(t, ns), func(a, b corev1alpha1.ObjectSet) int { return int(a.Spec.Revision - b.Spec.Revision) })
	statuses := j.Requests(t, ns, named(newest.Name), func(e sandbox.Entry) bool { return e.Object.Subresource == "status" })
	most := 2 // and one per second if the rollout is slow
	if n := len(statuses); n > 0 {
		most += int(statuses[n-1].Received.Sub(statuses[0].Received).Seconds())
	}
	if len(written) == 0 || len(statuses) < 2 || len(statuses) > most || !statuses[0].Done.Before(written[0].Received) {
		t.Errorf("want a status before the changed object is written, and one after it:%s", harness.Lines(append(statuses, written...)))
	}

	edit(t, ns, "two", makeUnready)
	j = env.Journal(t)
	next("v3")
	await(t, dep, "to wait for phase two", func(d *corev1alpha1.ObjectDeployment) error {
		if d.Status.Revision != 3 || len(d.Status.Blocking) != 1 || d.Status.Blocking[0].Name != "two" {
			return fmt.Errorf("revision %d waits for %+v", d.Status.Revision, d.Status.Blocking)
		}
		return nil
	})
	j.Rest(t, ns)
	if writes := j.Requests(t, ns, named("four"), sandbox.Writes()); len(writes) > 0 {
		t.Fatalf("the last phase was written although phase two was not ready:%s", harness.Lines(writes))
	}
	edit(t, ns, "two", makeReady)
	awaitValue(t, ns, "four", "v3")
}

// gatedByTwoKinds returns a deployment with probes for objects of two kinds in the first phase.
func gatedByTwoKinds(ns string) *corev1alpha1.ObjectDeployment {
	var account corev1alpha1.ObjectSetObject
	account.Object.Raw = []byte(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"account"}}`)
	dep := gated(ns, phase("one", configMap("one", "v1"), account), phase("two", configMap("two", "v1")))
	dep.Spec.Template.Spec.AvailabilityProbes = append(dep.Spec.Template.Spec.AvailabilityProbes, corev1alpha1.ObjectSetProbe{
		Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ServiceAccount"}},
		Probes:   []corev1alpha1.Probe{{CEL: &corev1alpha1.ProbeCELSpec{Rule: `self.metadata.name != ""`, Message: "nameless"}}},
	})
	return dep
}

// Two watches deliver objects of two kinds, and can show different points in time. Before a gate
// on both kinds opens, the engine lists all of its objects again (invariant 1).
func TestGateIsConfirmed(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := gatedByTwoKinds(ns)
	env.Create(t, dep)
	awaitPhases(t, dep, corev1alpha1.PhaseStateProbing, corev1alpha1.PhaseStateWaiting)
	j := env.Journal(t)
	edit(t, ns, "one", makeReady)
	awaitValue(t, ns, "two", "v1")
	made := j.Await(t, ns, named("two"), sandbox.Writes())
	for _, resource := range []string{"configmaps", "serviceaccounts"} {
		lists := j.Requests(t, ns, sandbox.ByVerb("list"), sandbox.ByResource(resource), func(e sandbox.Entry) bool { return e.Code == 200 && e.Done.Before(made[0].Received) })
		if len(lists) == 0 {
			t.Errorf("phase two was written, and the %s of phase one were not asked for after the last of them was ready", resource)
		}
	}
}

// Phases without probes open together with the claim. They are still written in order: each phase
// waits until the previous one is complete (invariant 1).
func TestOrderWithoutProbes(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := deployment(ns, phase("one", configMap("one", "v1"), configMap("REFUSED", "v1")), phase("two", configMap("two", "v1")), phase("three", configMap("three", "v1")))
	j := env.Journal(t)
	env.Create(t, dep)
	await(t, dep, "to name the refused object", func(d *corev1alpha1.ObjectDeployment) error {
		if len(d.Status.Blocking) != 1 || d.Status.Blocking[0].Name != "REFUSED" {
			return fmt.Errorf("it names %+v", d.Status.Blocking)
		}
		return nil
	})
	if writes := j.Requests(t, ns, named("two"), sandbox.Writes()); len(writes) > 0 {
		t.Fatalf("phase two was written, and one of phase one never was:%s", harness.Lines(writes))
	}
	awaitPhases(t, dep, corev1alpha1.PhaseStateApplying, corev1alpha1.PhaseStateWaiting, corev1alpha1.PhaseStateWaiting)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases[0].Objects = d.Spec.Template.Spec.Phases[0].Objects[:1]
	})
	awaitRollout(t, dep)
	for _, pair := range [][2]string{{"one", "two"}, {"two", "three"}} {
		earlier, later := j.Requests(t, ns, named(pair[0]), sandbox.ByVerb("create")), j.Requests(t, ns, named(pair[1]), sandbox.ByVerb("create"))
		if len(earlier) != 1 || len(later) != 1 || !earlier[0].Done.Before(later[0].Received) {
			t.Errorf("%s was created by %s, and %s by %s", pair[0], harness.Lines(earlier), pair[1], harness.Lines(later))
		}
	}
}

// The engine records the permission for a write in a status first: the claim before the first
// object, and the gate before the first object of its phase (invariants 1 and 4). The owners get
// the finalizer before there are objects to tear down.
func TestWhatAllowsAWriteIsDurable(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := gated(ns, phase("one", configMap("one", "v1")), phase("two", configMap("two", "v1")))
	j := env.Journal(t)
	env.Create(t, dep)
	awaitValue(t, ns, "one", "v1")
	first := j.Await(t, ns, named("one"), sandbox.Writes())
	claimBefore(t, j, dep, first[0].Received)
	finalized := j.Requests(t, ns, sandbox.ByResource("objectdeployments.package-operator.run"), sandbox.ByVerb("patch"), until(first[0].Received))
	if len(finalized) == 0 {
		t.Error("the first object was written before the deployment got our finalizer")
	}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(dep), dep))
	for _, obj := range []corev1alpha1.Conditioned{dep, currentSet(t, dep)} {
		if !slices.Contains(obj.GetFinalizers(), corev1alpha1.CachedFinalizer) {
			t.Errorf("%T has the finalizers %v while its objects are there", obj, obj.GetFinalizers())
		}
	}

	j.Rest(t, ns)
	j = env.Journal(t)
	edit(t, ns, "one", makeReady)
	awaitValue(t, ns, "two", "v1")
	second := j.Await(t, ns, named("two"), sandbox.Writes())
	statusBefore(t, j, ns, second[0].Received, "the gate of phase two")
	// It stays open, even for a manager that only knows it from the status.
	awaitPhases(t, dep, corev1alpha1.PhaseStateReady, corev1alpha1.PhaseStateProbing)
}

// claimBefore checks that the only set was made with its claim, before a moment.
func claimBefore(t *testing.T, j *harness.Journal, dep *corev1alpha1.ObjectDeployment, at time.Time) {
	t.Helper()
	set := currentSet(t, dep)
	made := j.Requests(t, dep.Namespace, named(set.Name), sandbox.ByVerb("create"), until(at))
	if len(made) != 1 || set.Annotations[corev1alpha1.ClaimedAnnotation] != "true" {
		t.Errorf("the claim was on record nowhere before the first object was written: the set was made by %s, with %v", harness.Lines(made), set.Annotations)
	}
	changed := j.Requests(t, dep.Namespace, named(set.Name), sandbox.Writes(), func(e sandbox.Entry) bool {
		return e.Verb != "create" && e.Object.Subresource == ""
	})
	if len(changed) != 0 {
		t.Errorf("the set was changed after it was made:%s", harness.Lines(changed))
	}
}

// statusBefore checks that a status of the set was written before a moment.
func statusBefore(t *testing.T, j *harness.Journal, ns string, at time.Time, what string) {
	t.Helper()
	statuses := j.Requests(t, ns, sandbox.ByResource("objectsets.package-operator.run"), sandbox.Writes(), until(at),
		func(e sandbox.Entry) bool { return e.Object.Subresource == "status" && e.Code == 200 })
	if len(statuses) == 0 {
		t.Errorf("%s was on no status of the set before it was made use of", what)
	}
}

// until accepts requests that had ended at a moment.
func until(at time.Time) sandbox.Filter {
	return func(e sandbox.Entry) bool { return e.Done.Before(at) }
}

// While a new revision is blocked, each object has one writer: the new revision in the phases that
// it opened, the old one in the others. Objects that only the old one contains stay until the new
// one has succeeded (invariants 2 and 3).
func TestEachObjectHasOneWriterDuringAnUpgrade(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := gated(ns, phase("one", configMap("one", "v1")), phase("two", configMap("two", "v1"), configMap("obsolete", "v1")))
	env.Create(t, dep)
	for _, name := range []string{"one", "two", "obsolete"} {
		awaitValue(t, ns, name, "v1")
		edit(t, ns, name, makeReady)
	}
	awaitRollout(t, dep)
	edit(t, ns, "one", makeUnready)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases[0].Objects[0] = configMap("one", "v2")
		d.Spec.Template.Spec.Phases[1].Objects = []corev1alpha1.ObjectSetObject{configMap("two", "v2")}
	})
	awaitValue(t, ns, "one", "v2")
	j := env.Journal(t)
	for _, name := range []string{"one", "two", "obsolete"} {
		edit(t, ns, name, `{"data":{"value":"drifted"}}`)
	}
	for name, want := range map[string]string{"one": "v2", "two": "v1", "obsolete": "v1"} {
		awaitValue(t, ns, name, want)
		if writes := j.Await(t, ns, named(name), sandbox.Writes()); len(writes) != 1 {
			t.Errorf("%s drifted once and was written %d times:%s", name, len(writes), harness.Lines(writes))
		}
	}
	if deletes := j.Requests(t, ns, sandbox.ByVerb("delete")); len(deletes) != 0 {
		t.Errorf("deleted before the new revision has succeeded:%s", harness.Lines(deletes))
	}
	edit(t, ns, "one", makeReady)
	awaitRollout(t, dep)
	awaitValue(t, ns, "two", "v2")
	env.WaitGone(t, patience, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "obsolete"}}) // after the rollout
}

// A revision that was overtaken before it succeeded is archived after the newest one has written
// all of its objects. It stays while it has an object that the newest one lacks.
func TestOvertakenRevisionIsArchived(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := gated(ns, phase("one", configMap("object", "v1")))
	env.Create(t, dep)
	awaitValue(t, ns, "object", "v1")
	state := func(want map[int64]corev1alpha1.ObjectSetLifecycleState) {
		t.Helper()
		harness.Eventually(t, patience, "the revisions to be right", func(context.Context) error {
			got := map[int64]corev1alpha1.ObjectSetLifecycleState{}
			for _, s := range setsOf(t, ns) {
				got[s.Spec.Revision] = s.Spec.LifecycleState
			}
			if !maps.Equal(got, want) {
				return fmt.Errorf("they are %v", got)
			}
			return nil
		})
	}
	const active, archived = corev1alpha1.ObjectSetLifecycleStateActive, corev1alpha1.ObjectSetLifecycleStateArchived
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("one", configMap("object", "v2"), configMap("more", "v2"))}
	})
	state(map[int64]corev1alpha1.ObjectSetLifecycleState{1: archived, 2: active})
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("one", configMap("object", "v3"))}
	})
	awaitValue(t, ns, "object", "v3")
	env.Journal(t).Rest(t, ns)
	state(map[int64]corev1alpha1.ObjectSetLifecycleState{1: archived, 2: active, 3: active})
	awaitValue(t, ns, "more", "v2")
	edit(t, ns, "object", makeReady)
	awaitRollout(t, dep)
	state(map[int64]corev1alpha1.ObjectSetLifecycleState{1: archived, 2: archived, 3: active})
	absent(t, ns, "more")
}

// A revision is archived after all objects that only it contained were removed. If a foreign
// finalizer holds an object, the objects of previous phases must stay, too (invariant 6).
func TestArchivedRevisionOwnsNothing(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := install(t, deployment(ns, phase("one", configMap("stays", "v1"), configMap("first", "v1")), phase("two", configMap("held", "v1"))))
	old := currentSet(t, dep)
	edit(t, ns, "held", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("one", configMap("stays", "v2"))}
	})
	awaitRollout(t, dep)
	j := env.Journal(t)
	j.Rest(t, ns)
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(old), old))
	if old.Spec.LifecycleState == corev1alpha1.ObjectSetLifecycleStateArchived {
		t.Errorf("the old revision is archived, and an object of it is there: %+v", get(t, ns, "held").ObjectMeta)
	}
	if cm := get(t, ns, "first"); cm.DeletionTimestamp != nil {
		t.Error("phase one of the old revision is deleted before phase two is removed")
	}
	edit(t, ns, "held", `{"metadata":{"finalizers":null}}`)
	await(t, old, "to be archived", func(s *corev1alpha1.ObjectSet) error {
		return harness.HasCondition(s, corev1alpha1.ConditionArchived, metav1.ConditionTrue, corev1alpha1.ReasonArchived)
	})
	absent(t, ns, "held")
	absent(t, ns, "first")
}

// A template that names a missing slice is not rolled out as if the slice were empty: the objects
// in the slices of the old revision stay (invariant 2). The same applies to Secrets with objects.
func TestMissingSliceDeletesNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make func(*testing.T, string, corev1alpha1.ObjectSetObject) client.Object
		name func(*corev1alpha1.ObjectSetTemplatePhase, string)
	}{
		"slice": {
			func(_ *testing.T, ns string, o corev1alpha1.ObjectSetObject) client.Object {
				return &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "content"}, Objects: []corev1alpha1.ObjectSetObject{o}}
			},
			func(p *corev1alpha1.ObjectSetTemplatePhase, name string) { p.Slices = []string{name} },
		},
		"secret": {sealed, func(p *corev1alpha1.ObjectSetTemplatePhase, name string) { p.SecretSlices = []string{name} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := env.TestNamespace(t)
			stored := tc.make(t, ns, configMap("sliced", "v1"))
			env.Create(t, stored)
			dep := deployment(ns, phase("one", configMap("inline", "v1")))
			tc.name(&dep.Spec.Template.Spec.Phases[0], stored.GetName())
			install(t, dep)
			if get(t, ns, "sliced").Data["value"] != "v1" {
				t.Fatal("the stored object is another one")
			}
			j := env.Journal(t)
			change(t, dep, func(d *corev1alpha1.ObjectDeployment) { tc.name(&d.Spec.Template.Spec.Phases[0], "lost") })
			j.Rest(t, ns)
			if writes := j.Requests(t, ns, named("sliced"), sandbox.Writes()); len(writes) > 0 {
				t.Fatalf("the object of a slice was written, though it is not known whether the new revision has it:%s", harness.Lines(writes))
			}
			await(t, dep, "to name the slice", func(d *corev1alpha1.ObjectDeployment) error {
				return errors.Join(harness.HasCondition(d, corev1alpha1.ConditionStalled, metav1.ConditionTrue, ""), harness.HasCondition(d, corev1alpha1.ConditionProgressing, metav1.ConditionFalse, corev1alpha1.ReasonSlicesMissing, "lost"))
			})
		})
	}
}

// sealed returns a Secret with an object, as the controller of packages creates it.
func sealed(t *testing.T, ns string, o corev1alpha1.ObjectSetObject) client.Object {
	t.Helper()
	_, made, err := objectslices.Split("shop", "", []corev1alpha1.ObjectSetTemplatePhase{phase("one", o)},
		&objectslices.Sealing{Key: []byte("key"), Holds: func(int, int) bool { return true }})
	require.NoError(t, err)
	secret, err := made[0].Secret()
	require.NoError(t, err)
	secret.Namespace = ns
	return secret
}

// Probes that take minutes delay neither the deletion of their package nor another
// package.
func TestDeletionDoesNotWaitForProbes(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	list := "[" + strings.Repeat("0,", 49) + "0]"
	costly := corev1alpha1.Probe{CEL: &corev1alpha1.ProbeCELSpec{Rule: fmt.Sprintf("%[1]s.all(a, %[1]s.all(b, %[1]s.all(c, c == b)))", list), Message: "never"}}
	var objects []corev1alpha1.ObjectSetObject
	for i := range 200 {
		objects = append(objects, configMap(fmt.Sprintf("object-%03d", i), "v1"))
	}
	dep := gated(ns, phase("one", objects...))
	dep.Spec.Template.Spec.AvailabilityProbes[0].Probes = slices.Repeat([]corev1alpha1.Probe{costly}, 20)
	env.Create(t, dep)
	awaitValue(t, ns, "object-199", "v1")
	env.Namespace(t, ns+"-other")
	install(t, deployment(ns+"-other", phase("one", configMap("one", "v1"))))
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	env.WaitGone(t, patience, dep)
}

// For a phase that never opened, the teardown makes one list request per kind, not one request per
// object.
func TestTeardownAsksForNothingUnwritten(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := gated(ns, phase("one", configMap("one", "v1")), phase("two", configMap("two", "v1"), configMap("also-two", "v1")))
	env.Create(t, dep)
	awaitPhases(t, dep, corev1alpha1.PhaseStateProbing, corev1alpha1.PhaseStateWaiting)
	env.Settle(t, ns)
	j := env.Journal(t)
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	env.WaitGone(t, patience, dep)
	absent(t, ns, "one")
	byManager := sandbox.ByUser(harness.ManagerUser())
	requests := j.Requests(t, ns, byManager, sandbox.ByResource("configmaps"), sandbox.Not(sandbox.ByVerb("watch")), sandbox.Not(sandbox.ByVerb("list")))
	if len(requests) != 1 || requests[0].Verb != "delete" {
		t.Errorf("the one written object is deleted without any other request:%s", harness.Lines(requests))
	}
}
