package engine_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// The manager corrects drift that happened while it was away, as if it had been running
// (invariant 4). Without drift, it does not write (invariant 5). The test is not parallel, because
// it stops the shared manager.
func TestDriftWhileTheManagerWasAway(t *testing.T) {
	rows := []struct {
		name  string
		drift func(ns string)
	}{
		{"nothing", func(string) {}},
		{"field", func(ns string) { edit(t, ns, "object", `{"data":{"value":"drifted"}}`) }},
		{"cache-label", func(ns string) {
			edit(t, ns, "object", fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, corev1alpha1.CacheLabel))
		}},
		{"reference", func(ns string) { edit(t, ns, "object", `{"metadata":{"ownerReferences":null}}`) }},
		{"deleted", func(ns string) { require.NoError(t, env.Client.Delete(t.Context(), get(t, ns, "object"))) }},
	}
	before := map[string]*corev1.ConfigMap{}
	for _, row := range rows {
		env.Namespace(t, row.name)
		install(t, deployment(row.name, phase("one", configMap("object", "v1"), configMap("beside", "v1"))))
		before[row.name] = get(t, row.name, "object")
	}
	env.Namespace(t, "paused")
	paused := install(t, deployment("paused", phase("one", configMap("object", "v1"))))
	change(t, paused, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = true })
	await(t, paused, "to be paused", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionPaused, metav1.ConditionTrue, corev1alpha1.ReasonPaused)
	})
	env.Namespace(t, "phase")
	alone := phaseObject("phase", "alone", 1, configMap("object", "v1"))
	env.Create(t, alone)
	await(t, alone, "to be available", phaseAvailable)
	env.Namespace(t, "classes")
	install(t, deployment("classes", phase("first", configMap("first", "v1")), here("local", configMap("local", "v1")), phase("last", configMap("last", "v1"))))
	quiet := []string{"nothing", "paused", "phase", "classes"}
	env.Settle(t, quiet...)
	manager.Stop()
	for _, row := range rows {
		row.drift(row.name)
	}
	j := env.Journal(t)
	manager = env.StartManager(suite)
	for _, row := range rows[1:] {
		t.Run(row.name, func(t *testing.T) { awaitSame(t, before[row.name]) })
	}
	writes := slices.DeleteFunc(j.Rest(t, quiet...), sandbox.Not(sandbox.Writes()))
	if len(writes) != 0 {
		t.Errorf("a restart with everything in place wrote:%s", harness.Lines(writes))
	}
}

// The loser of a claim does not win it because it is reconciled first after a restart (invariant
// 10). The test is not parallel, because it stops the shared manager.
func TestClaimsSurviveARestart(t *testing.T) {
	ns := env.TestNamespace(t)
	none := collision(corev1alpha1.CollisionProtectionNone)
	winner := deployment(ns, phase("one", configMap("both", "winner", none)))
	winner.Name = "winner"
	install(t, winner)
	loser := deployment(ns, phase("one", configMap("own", "loser")), phase("two", configMap("both", "loser", none)))
	loser.Name = "loser"
	env.Create(t, loser)
	refused := func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, "", "ObjectDeployment "+ns+"/winner")
	}
	await(t, loser, "to name the winner", refused)
	env.Settle(t, ns)
	before := get(t, ns, "both")

	manager.Stop()
	j := env.Journal(t)
	manager = env.StartManager(suite)
	j.Rest(t, ns)
	if writes := j.Requests(t, ns, sandbox.Writes()); len(writes) != 0 {
		t.Fatalf("the claims were decided already, and a restart wrote:%s", harness.Lines(writes))
	}
	// After a change the loser asks again.
	change(t, loser, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases[0].Objects[0] = configMap("own", "again")
	})
	await(t, loser, "to name the winner again", refused)
	if writes := j.Requests(t, ns, sandbox.Writes(), sandbox.ByResource("configmaps")); len(writes) != 0 {
		t.Errorf("the loser of a claim wrote after a restart:%s", harness.Lines(writes))
	}
	if after := get(t, ns, "both"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the object is controlled by %v, has %v", metav1.GetControllerOf(after), after.Data)
	}
}
