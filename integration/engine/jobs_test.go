package engine_test

import (
	"bytes"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// The tests simulate the Job controller, which does not run here.

// job is an object of a template.
func job(namespace, name, image string) corev1alpha1.ObjectSetObject {
	return raw(fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":%q,"namespace":%q},"spec":{"template":{"spec":{
		"restartPolicy":"Never","containers":[{"name":"main","image":%q}]}}}}`, name, namespace, image))
}

// completeProbe asks each Job whether it is complete.
var completeProbe = corev1alpha1.ObjectSetProbe{
	Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Group: "batch", Kind: "Job"}},
	Probes:   []corev1alpha1.Probe{{Condition: &corev1alpha1.ProbeConditionSpec{Type: "Complete", Status: "True"}}},
}

// awaitJob waits until there is a Job that is not the one before.
func awaitJob(t *testing.T, namespace, name string, before types.UID) *batchv1.Job {
	t.Helper()
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return await(t, j, "to run", func(j *batchv1.Job) error {
		if j.UID == before {
			return fmt.Errorf("it is the one before")
		}
		return nil
	})
}

// finish ends a Job.
func finish(t *testing.T, j *batchv1.Job, end batchv1.JobConditionType) {
	t.Helper()
	first := map[batchv1.JobConditionType]batchv1.JobConditionType{batchv1.JobComplete: batchv1.JobSuccessCriteriaMet, batchv1.JobFailed: batchv1.JobFailureTarget}[end]
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(j), j))
	j.Status.StartTime = ptr.To(metav1.Now())
	for _, typ := range []batchv1.JobConditionType{first, end} {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: typ, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	if end == batchv1.JobComplete {
		j.Status.CompletionTime, j.Status.Succeeded = ptr.To(metav1.Now()), 1
	}
	require.NoError(t, env.Client.Status().Update(t.Context(), j))
}

// remove deletes a Job as its TTL does.
func remove(t *testing.T, j *batchv1.Job) {
	t.Helper()
	require.NoError(t, env.Client.Delete(t.Context(), j, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// The status of a paused deployment still records finished Jobs, because pausing only stops writes
// of objects.
func TestPausedDeploymentRecordsJobs(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := deployment(ns, phase("one", job(ns, "migrate", "a")))
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{completeProbe}
	env.Create(t, dep)
	migrate := awaitJob(t, ns, "migrate", "")
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = true })
	await(t, dep, "to be paused", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionPaused, metav1.ConditionTrue, corev1alpha1.ReasonPaused)
	})
	finish(t, migrate, batchv1.JobComplete)
	remove(t, migrate)
	await(t, dep, "to record it", func(d *corev1alpha1.ObjectDeployment) error {
		if len(d.Status.Jobs) != 1 {
			return fmt.Errorf("it has %+v", d.Status.Jobs)
		}
		return nil
	})
	j := env.Journal(t)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = false })
	awaitRollout(t, dep)
	j.Rest(t, ns)
	if writes := j.Requests(t, ns, sandbox.Writes(), sandbox.ByResource("jobs.batch")); len(writes) != 0 {
		t.Errorf("the Job was written again:%s", harness.Lines(writes))
	}
	// Without the record it runs again.
	require.NoError(t, env.Client.Status().Patch(t.Context(), dep, client.RawPatch(types.MergePatchType, []byte(`{"status":{"jobs":null}}`))))
	awaitJob(t, ns, "migrate", migrate.UID)
}

// A completed Job runs again in a recreated namespace, also one that is not part of the
// package.
func TestJobRunsAgainInARecreatedNamespace(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	labels := map[string]string{"app": ns}
	dep := &corev1alpha1.ClusterObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	dep.Spec.Selector.MatchLabels, dep.Spec.Template.Metadata.Labels = labels, labels
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{completeProbe}
	settings := configMap("settings", "v1")
	settings.Object.Raw = bytes.Replace(settings.Object.Raw, []byte(`"metadata":{`), fmt.Appendf(nil, `"metadata":{"namespace":%q,`, ns), 1)
	dep.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("one", job(ns, "migrate", "a"), settings)}
	env.Create(t, dep)
	migrate := awaitJob(t, ns, "migrate", "")
	finish(t, migrate, batchv1.JobComplete)
	await(t, dep, "to record it with its namespace", func(d *corev1alpha1.ClusterObjectDeployment) error {
		if len(d.Status.Jobs) != 1 || d.Status.Jobs[0].NamespaceUID == "" || d.Status.Jobs[0].UID != migrate.UID {
			return fmt.Errorf("it has %+v", d.Status.Jobs)
		}
		return nil
	})
	was := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	require.NoError(t, env.Client.Delete(t.Context(), was))
	// This simulates the namespace controller, which does not run here.
	remove(t, migrate)
	require.NoError(t, env.Client.Delete(t.Context(), get(t, ns, "settings")))
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(was), was))
	was.Spec.Finalizers = nil
	require.NoError(t, env.Client.SubResource("finalize").Update(t.Context(), was))
	env.WaitGone(t, patience, was)
	require.NoError(t, env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	awaitJob(t, ns, "migrate", migrate.UID)
}
