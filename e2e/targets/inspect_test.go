package targets_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

const looked = `  availabilityProbes:
  - selector: {kind: {group: batch, kind: Job}}
    probes: [{condition: {type: Complete, status: "True"}}]
  - selector: {kind: {group: "", kind: ConfigMap}}
    probes: [{cel: {rule: has(self.data.ready), message: it has to be ready}}]
`

// inspect runs the commands that read and change objects on a package in the target.
func (f *fixture) inspect(t *testing.T) {
	t.Helper()
	pkg := f.install(t, "looked", "edge", f.Push(t, "targets/looked:v1", harness.Files{
		"manifest.yaml": harness.Manifest("looked", []string{"run", "wait"}, looked),
		"job.yaml": `apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {package-operator.run/phase: run}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.com/migrate:v1}]}}}
`,
		"gate.yaml": harness.ConfigMap("gate", "wait", "v1"),
	}))
	first := f.job(t, "")
	first.Status.StartTime, first.Status.CompletionTime, first.Status.Succeeded = ptr.To(metav1.Now()), ptr.To(metav1.Now()), 1
	for _, typ := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		first.Status.Conditions = append(first.Status.Conditions, batchv1.JobCondition{Type: typ, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	require.NoError(t, f.target.Status().Update(t.Context(), first))
	f.shows(t, "gate")
	gate := configMap("gate")
	require.NoError(t, f.target.Get(t.Context(), client.ObjectKeyFromObject(gate), gate))
	require.NoError(t, f.target.Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: there, Name: "gate"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: there, Name: "gate", UID: gate.UID},
		Type:           corev1.EventTypeWarning, Reason: "Odd", Message: "seen in the target", LastTimestamp: metav1.Now(),
	}))
	f.WaitCondition(t, home, "looked", corev1alpha1.ConditionAvailable, "False")
	harness.Eventually(t, long, "the gate to be explained", func(context.Context) error {
		if code, out, errOut := f.command(t, "explain", "package/looked"); code != 0 || !strings.Contains(out, "it has to be ready") || !strings.Contains(out, "seen in the target") {
			return fmt.Errorf("explain ends with %d:\n%s%s", code, out, errOut)
		}
		return nil
	})
	code, out, errOut := f.command(t, "status", "package/looked", "--objects")
	if code != 0 || strings.Count(out, "Current") != 2 || strings.Contains(out, "controlled by") {
		t.Errorf("status ends with %d:\n%s%s", code, out, errOut)
	}
	if code, out, errOut = f.command(t, "retry", "job/migrate"); code != 0 {
		t.Errorf("retry ends with %d:\n%s%s", code, out, errOut)
	}
	second := f.job(t, first.UID)
	require.NoError(t, f.Client.Delete(t.Context(), pkg))
	harness.Collect(t, f.target, second)
	f.WaitGone(t, long, pkg)
}

// job waits for the Job in the target that is not the one before.
func (f *fixture) job(t *testing.T, before types.UID) *batchv1.Job {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: "migrate"}}
	harness.Eventually(t, long, "the Job to run", func(ctx context.Context) error {
		if err := f.target.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		if job.UID == before {
			return fmt.Errorf("it is the one before")
		}
		return nil
	})
	return job
}
