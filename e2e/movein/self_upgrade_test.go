package movein_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/testing/require"
)

// neverRuns has the Job that rehearses fail: its pod is scheduled nowhere.
const neverRuns = `apiVersion: batch/v1
kind: Job
metadata: {name: lockstep-rehearse, namespace: package-operator-system}
spec: {activeDeadlineSeconds: 1, template: {spec: {nodeSelector: {nowhere: "yes"}}}}
`

// deployed returns the manager's Deployment, which has to be of a version.
func deployed(t *testing.T, version string) *appsv1.Deployment {
	t.Helper()
	d := harness.EngineDeployment()
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	if got := d.Spec.Template.Spec.Containers[0].Image; got != harness.EngineImage(version) {
		t.Errorf("the Deployment has the image %s, want that of %s", got, version)
	}
	return d
}

// setOwn changes the engine's own package.
func setOwn(t *testing.T, image, patch string) {
	t.Helper()
	harness.Edit(t, env, own(), func(p *corev1alpha1.ClusterPackage) {
		p.Spec.Image, p.Spec.Patches = image, nil
		if patch != "" {
			p.Spec.Patches = []corev1alpha1.PackagePatch{{Patch: patch}}
		}
	})
}

// awaitOwn waits until the newest revision of the engine's own package is available, with this number at least, and returns its number.
func awaitOwn(t *testing.T, revision int64) (newest int64) {
	t.Helper()
	harness.Await(t, env, patience, own(), "the package to be available", func(p *corev1alpha1.ClusterPackage) error {
		c := meta.FindStatusCondition(p.Status.Conditions, corev1alpha1.ConditionAvailable)
		if c == nil || c.Status != "True" || c.ObservedGeneration != p.Generation || p.Status.Revision < revision || meta.IsStatusConditionTrue(p.Status.Conditions, corev1alpha1.ConditionProgressing) {
			return fmt.Errorf("revision %d: %+v", p.Status.Revision, p.Status.Conditions)
		}
		newest = p.Status.Revision
		return nil
	})
	return newest
}

// Definitions of which a later version has more fields.
const (
	usedCRD   = "imageconfigs.package-operator.run"
	unusedCRD = "hostedclusterpackages.package-operator.run"
)

// permitted checks that the undo permitted to replace the definition without pruned fields in objects, and returns the arguments of kubectl
// by which it is permitted for the other.
func permitted(t *testing.T, undone string) []string {
	t.Helper()
	for _, name := range []string{usedCRD, unusedCRD} {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Name: name}, crd))
		if got := crd.GetAnnotations()[corev1alpha1.AllowNarrowingAnnotation] != ""; got != (name == unusedCRD) {
			t.Errorf("%s may be replaced: %t", name, got)
		}
	}
	for line := range strings.Lines(undone) {
		if note, command, found := strings.Cut(line, ": kubectl annotate "); found && strings.Contains(note, usedCRD+" stays") && strings.Contains(note, "spec.later") {
			return append([]string{"annotate"}, strings.Fields(command)...)
		}
	}
	t.Fatalf("no permission is named:\n%s", undone)
	return nil
}

// The engine upgrades itself: a rehearsal that fails leaves its Deployment as it is and the status says why, another process goes on
// once one ends, and one command brings the former version back while none runs: the former one does not roll the newer out again. Its
// definitions are replaced again where no object has any of the pruned fields.
func TestSelfUpgrade(t *testing.T) {
	managers := []*harness.Manager{env.StartManager(t), env.StartManager(t)}
	stop := func() {
		managers[0].Stop()
		managers = managers[1:]
	}
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(env.Client.Delete(context.WithoutCancel(t.Context()), harness.EngineDeployment())))
	})
	applyEngine(t, "v0.0.1", "kubectl")
	if code, out, _ := run(t, 0, "adopt-engine", "--self", "--image", pushOwn(t, "v0.0.1"), "--insecure-registry", env.Registry(), "--yes"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	before := deployed(t, "v0.0.1")

	second := pushOwn(t, "v0.0.2")
	setOwn(t, second, neverRuns)
	harness.Await(t, env, patience, own(), "the reason", func(p *corev1alpha1.ClusterPackage) error {
		for _, b := range p.Status.Blocking {
			if b.Name == "lockstep-rehearse" && strings.Contains(b.Message, "do not pass the engine of the new version") {
				t.Logf("status.blocking: %+v", b)
				return nil
			}
		}
		return fmt.Errorf("%+v", p.Status)
	})
	if after := deployed(t, "v0.0.1"); after.Generation != before.Generation {
		t.Error("the Deployment is changed although the rehearsal failed")
	}
	code, out, _ := run(t, 0, "explain", "clusterpackage/"+corev1alpha1.EnginePackage)
	t.Logf("$ kubectl package explain clusterpackage/package-operator: %d\n%s", code, out)

	setOwn(t, second, "")
	awaitOwn(t, 3)
	deployed(t, "v0.0.2")
	stop() // the pods of the former version go, and the other process leads
	setOwn(t, pushOwn(t, "v0.0.3", usedCRD, unusedCRD), "")
	awaitOwn(t, 4)
	deployed(t, "v0.0.3")
	user := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"matchImages": []any{map[string]any{"prefix": "later.example.com/"}}, "rewrite": map[string]any{"prefix": "mirror.example.com/"}, "later": "x",
	}}}
	user.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind("ImageConfig"))
	user.SetName("later")
	env.Create(t, user)
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(env.Client.Delete(context.WithoutCancel(t.Context()), user)))
	})

	stop() // it crashes as the leader
	undone := killedAtEachWrite(t, "rollout", "undo", "clusterpackage/"+corev1alpha1.EnginePackage, "--yes", "--wait=false")
	if !strings.Contains(undone, "Deployment package-operator-system/"+config.ServiceAccount+" is that of revision 3 again") {
		t.Errorf("it says:\n%s", undone)
	}
	restored := deployed(t, "v0.0.2")
	permit := permitted(t, undone)
	managers = append(managers, env.StartManager(t))
	harness.Await(t, env, patience, own(), "the definition that is in use", func(p *corev1alpha1.ClusterPackage) error {
		for _, b := range p.Status.Blocking {
			if b.Name == usedCRD && strings.Contains(b.Message, "rehearse --crds FILE") {
				t.Logf("status.blocking: %+v", b)
				return nil
			}
		}
		return fmt.Errorf("%+v", p.Status)
	})
	require.NoError(t, env.Client.Patch(t.Context(), user, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"later":null}}`))))
	_, err := env.Kubectl(t.Context(), permit...)
	require.NoError(t, err)
	awaitOwn(t, 5)
	// Annotations count, too, and the one with the number of the revision is another one; there and back would be two changes.
	if after := deployed(t, "v0.0.2"); after.Generation > restored.Generation+1 || after.UID != before.UID || !cmp.Equal(restored.Spec, after.Spec) {
		t.Errorf("the former manager changed the Deployment %d times\n%s", after.Generation-restored.Generation, cmp.Diff(restored.Spec, after.Spec))
	}
	stop()
	if code, out, _ := run(t, 0, "release-engine", "--self", "--yes"); code != 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
