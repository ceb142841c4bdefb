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
	"lockstep.run/lockstep/test/require"
)

// awaitJob waits until there is a Job that is not the one before.
func awaitJob(t *testing.T, namespace string, before types.UID) *batchv1.Job {
	t.Helper()
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "migrate"}}
	return await(t, j, "to run", func(j *batchv1.Job) error {
		if j.UID == before {
			return fmt.Errorf("it is the one before")
		}
		return nil
	})
}

// A completed Job runs again in a recreated namespace, also one that is not part of the
// package.
func TestJobRunsAgainInARecreatedNamespace(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	labels := map[string]string{"app": ns}
	dep := &corev1alpha1.ClusterObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	dep.Spec.Selector.MatchLabels, dep.Spec.Template.Metadata.Labels = labels, labels
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{{
		Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Group: "batch", Kind: "Job"}},
		Probes:   []corev1alpha1.Probe{{Condition: &corev1alpha1.ProbeConditionSpec{Type: "Complete", Status: "True"}}},
	}}
	job := raw(fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate","namespace":%q},"spec":{"template":{"spec":{
		"restartPolicy":"Never","containers":[{"name":"main","image":"a"}]}}}}`, ns))
	settings := configMap("settings", "v1")
	settings.Object.Raw = bytes.Replace(settings.Object.Raw, []byte(`"metadata":{`), fmt.Appendf(nil, `"metadata":{"namespace":%q,`, ns), 1)
	dep.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("one", job, settings)}
	env.Create(t, dep)
	migrate := awaitJob(t, ns, "")
	// As the Job controller does, which does not run here.
	migrate.Status.StartTime, migrate.Status.CompletionTime, migrate.Status.Succeeded = ptr.To(metav1.Now()), ptr.To(metav1.Now()), 1
	for _, typ := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		migrate.Status.Conditions = append(migrate.Status.Conditions, batchv1.JobCondition{Type: typ, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	require.NoError(t, env.Client.Status().Update(t.Context(), migrate))
	await(t, dep, "to record it with its namespace", func(d *corev1alpha1.ClusterObjectDeployment) error {
		if len(d.Status.Jobs) != 1 || d.Status.Jobs[0].NamespaceUID == "" || d.Status.Jobs[0].UID != migrate.UID {
			return fmt.Errorf("it has %+v", d.Status.Jobs)
		}
		return nil
	})
	was := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	require.NoError(t, env.Client.Delete(t.Context(), was))
	// As the namespace controller does, which does not run here.
	require.NoError(t, env.Client.Delete(t.Context(), migrate, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	require.NoError(t, env.Client.Delete(t.Context(), get(t, ns, "settings")))
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(was), was))
	was.Spec.Finalizers = nil
	require.NoError(t, env.Client.SubResource("finalize").Update(t.Context(), was))
	env.WaitGone(t, patience, was)
	require.NoError(t, env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	awaitJob(t, ns, migrate.UID)
}
