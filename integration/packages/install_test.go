package packages_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// The deployment and the Package report the result of an install.
func TestInstall(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	files := harness.Phased("shop", 2, 2)
	files["manifest.yaml"] = strings.Replace(files["manifest.yaml"], "spec:\n", "spec:\n  version: 1.2.3+build\n  provider: acme\n", 1)
	digest := "sha256:" + strings.Repeat("5f", 32)
	files["manifest.yaml"] += "  images: [{name: agent, image: registry.example/agent:v2}]\n"
	files["manifest.lock.yaml"] = "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nspec: {images: [{name: agent, image: registry.example/agent:v2, digest: " + digest + "}]}\n"
	files["deployment.yaml.gotmpl"] = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {package-operator.run/phase: phase-01}}, spec: {replicas: 0, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, image: "registry.example/web:v1", env: [{name: RELATED_IMAGE_AGENT, value: "{{.images.agent}}"}]}]}}}}` + "\n"
	image := env.Push(t, "install:v1", files)
	pkg := harness.Package(ns, "shop", image)
	pkg.Spec.ProgressDeadlineSeconds, pkg.Spec.RevisionHistoryLimit = ptr.To[int32](77), ptr.To[int32](3)
	env.Create(t, pkg)
	env.WaitAvailable(t, ns, "shop")

	dep := deployment(t, ns)
	labels := map[string]string{
		corev1alpha1.PackageLabel: "shop", corev1alpha1.PackageInstanceLabel: "shop",
		corev1alpha1.PackageVersionLabel: "1.2.3_build", corev1alpha1.PackageProviderLabel: "acme",
	}
	require.Equal(t, labels, dep.Labels)
	annotations := map[string]string{
		corev1alpha1.PackageSourceImageAnnotation: image, corev1alpha1.PackageConfigAnnotation: "null",
		corev1alpha1.PackageDigestAnnotation:     shop(t, ns).Status.Resolved.Digest,
		corev1alpha1.UnpackedHashAnnotation:      shop(t, ns).Status.UnpackedHash,
		corev1alpha1.PackageGenerationAnnotation: "1",
		corev1alpha1.TemplateDigestAnnotation:    dep.Annotations[corev1alpha1.TemplateDigestAnnotation],
		corev1alpha1.ChangeCauseAnnotation:       "Installing shop package.",
	}
	require.Equal(t, annotations, dep.Annotations)
	if *dep.Spec.ProgressDeadlineSeconds != 77 || *dep.Spec.RevisionHistoryLimit != 3 {
		t.Errorf("deadline %d, limit %d", *dep.Spec.ProgressDeadlineSeconds, *dep.Spec.RevisionHistoryLimit)
	}

	pkg = shop(t, ns)
	require.NoError(t,
		harness.HasCondition(pkg, corev1alpha1.ConditionUnpacked, metav1.ConditionTrue, corev1alpha1.ReasonUnpackSuccess, image),
		harness.HasCondition(pkg, corev1alpha1.ConditionReady, metav1.ConditionTrue, ""),
		lacks(pkg, corev1alpha1.ConditionInvalid), lacks(pkg, corev1alpha1.ConditionReconciling), lacks(pkg, corev1alpha1.ConditionStalled))
	r := pkg.Status.Resolved
	if r == nil || r.PackageName != "shop" || r.Version != "1.2.3+build" || r.Image != image || !strings.HasPrefix(r.Digest, "sha256:") {
		t.Errorf("resolved: %+v", r)
	}
	images := []corev1alpha1.PackageImage{{Name: "agent", Image: "registry.example/agent:v2", Digest: digest}, {Image: "registry.example/web:v1"}}
	if diff := cmp.Diff(images, r.Images); diff != "" || r.OmittedImages != 0 {
		t.Errorf("%d left out: %s", r.OmittedImages, diff)
	}
	if pkg.Status.Revision != 1 || pkg.Status.UnpackedHash == "" || len(pkg.Status.Blocking) > 0 {
		t.Errorf("status: %+v", pkg.Status)
	}
	phases := []corev1alpha1.PhaseStatus{{Name: "phase-00", State: "Ready", Ready: 2, Total: 2}, {Name: "phase-01", State: "Ready", Ready: 3, Total: 3}}
	require.Equal(t, phases, pkg.Status.Phases)
}
