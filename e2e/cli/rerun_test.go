package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A finished Job runs again, whether it still exists or not. A Job without a record is an
// error.
func TestRerun(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "rerun")
	job := func(name, more string) string {
		return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s, annotations: {package-operator.run/phase: deploy}}\nspec:\n%s"+
			"  template: {spec: {restartPolicy: Never, containers: [{name: main, image: registry.example.com/main}]}}\n", name, more)
	}
	probe := "  availabilityProbes:\n  - selector: {kind: {group: batch, kind: Job}}\n    probes:\n    - condition: {type: Complete, status: \"True\"}\n"
	image := env.Push(t, "rerun:v1", harness.Files{
		"manifest.yaml": harness.Manifest("rerun", []string{"deploy"}, probe),
		"jobs.yaml":     job("stays", "") + "---\n" + job("expires", "  ttlSecondsAfterFinished: 0\n"),
	})
	ok(t, env, "install", image, "rerun", "-n", "rerun")
	// runs returns the UIDs of recorded Jobs.
	runs := func() map[string]types.UID {
		dep := &corev1alpha1.ObjectDeployment{}
		require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: "rerun", Name: "rerun"}, dep))
		uids := map[string]types.UID{}
		for _, j := range dep.Status.Jobs {
			uids[j.Name] = j.UID
		}
		return uids
	}
	gone := func() bool {
		err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: "rerun", Name: "expires"}, &batchv1.Job{})
		return apierrors.IsNotFound(err)
	}
	harness.Eventually(t, harness.Patience, "both Jobs to be recorded", func(context.Context) error {
		if got := runs(); !gone() || len(got) < 2 {
			return fmt.Errorf("recorded are %v", got)
		}
		return nil
	})
	before := runs()
	for _, name := range []string{"stays", "expires"} {
		if got := ok(t, env, "retry", "job/"+name, "-n", "rerun"); got.out != "job rerun/"+name+" runs again\n" {
			t.Errorf("got %+v", got)
		}
		harness.Eventually(t, harness.Patience, name+" to have run again", func(context.Context) error {
			if after := runs(); after[name] == "" || after[name] == before[name] {
				return fmt.Errorf("recorded are %v", after)
			}
			return nil
		})
	}
	for name, want := range map[string]string{"job/none": "no package has a record of it", "pod/none": "pod"} {
		if got := run(t, env, "retry", name, "-n", "rerun"); got.code != 1 || !strings.Contains(got.err, want) {
			t.Errorf("%s: got %+v, want %q", name, got, want)
		}
	}
}
