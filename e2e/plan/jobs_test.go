package plan_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/e2e/harness"
)

// migrating is a package with a Job that its TTL removes when it has finished.
func migrating(image, value string) harness.Files {
	return harness.Files{
		"manifest.yaml": harness.Manifest("migrating", []string{"migrate", "run"}, `  version: 1.0.0
  availabilityProbes:
  - selector: {kind: {group: batch, kind: Job}}
    probes:
    - condition: {type: Complete, status: "True"}
`),
		"objects.yaml": fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {package-operator.run/phase: migrate}}
spec:
  ttlSecondsAfterFinished: 0
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example.com/migrate:%s"}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, annotations: {package-operator.run/phase: run}}
data: {value: "%s"}
`, image, value),
	}
}

// A plan does not create a Job that completed earlier and was deleted, because the upgrade does
// not either. It does if the content changed.
func TestPlanOfAJobThatHasRun(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "migrating")
	one := env.Push(t, "migrating:v1", migrating("v1", "one"))
	env.Create(t, harness.Package("migrating", "migrating", one))
	env.WaitAvailable(t, "migrating", "migrating")
	harness.Eventually(t, harness.Patience, "the Job to be deleted", func(ctx context.Context) error {
		err := env.Client.Get(ctx, types.NamespacedName{Namespace: "migrating", Name: "migrate"}, &batchv1.Job{})
		if err == nil {
			return errors.New("it is there")
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	same := planOf(t, env, env.Push(t, "migrating:v2", migrating("v1", "two")), "-n", "migrating")
	if len(same.Phases[0].Changes) > 0 || same.Phases[0].Unchanged == 0 || same.Summary.Create > 0 {
		t.Errorf("the plan is %+v", same)
	}
	changed := planOf(t, env, env.Push(t, "migrating:v3", migrating("v2", "one")), "-n", "migrating")
	if changed.Summary.Create != 1 {
		t.Errorf("the plan is %+v", changed)
	}
}
