package packages_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// ours are the requests of this controller among those of the manager.
var ours = []string{"patch packages", "update packages/status", "create objectdeployments", "patch objectdeployments", "create objectslices", "get packages", "list packages", "get objectslices"}

// mostStatuses is how many statuses of one Package requests have at most: that it is loaded, rolled out and available, and one
// each second that reports progress, where the machine is slow.
func mostStatuses(entries []sandbox.Entry) int {
	took := time.Duration(0)
	if len(entries) > 0 {
		took = entries[len(entries)-1].Received.Sub(entries[0].Received)
	}
	return 3 + int(took/limits.PackageStatusInterval)
}

// An install writes the finalizer, the deployment, its slices and a status or two,
// and records an event or two.
func TestRequestsOfAnInstall(t *testing.T) {
	t.Parallel()
	ns, image := env.TestNamespace(t), push(t, 5, 10, "v1")
	from := env.Journal(t)
	install(t, ns, image)
	entries := from.Rest(t, ns)
	got, counts := map[string]int{}, harness.Tally(entries)
	for _, request := range ours {
		if counts[request] > 0 {
			got[request] = counts[request]
		}
	}
	want := map[string]int{
		"patch packages": 1, "update packages/status": 1, "create objectdeployments": 1,
		"create objectslices": 5, "patch objectdeployments": 1, // one slice for each phase, then the template
	}
	if n := got["update packages/status"]; n > 1 && n <= mostStatuses(entries) {
		want["update packages/status"] = n // the install took longer than statuses are held back
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s%s", diff, harness.Lines(entries))
	}
	// A package that is loaded and available by the same status is one event.
	env.Settle(t, ns)
	reasons := slices.DeleteFunc(events(t, ns), func(reason string) bool { return reason == "Normal/Unpacked" })
	require.Equal(t, []string{"Normal/Available"}, reasons)

	env.Journal(t).Silent(t, ns)
}

// What the deployment and the Package say after an install.
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
		corev1alpha1.ChangedWithAnnotation:       "packages.test",
		corev1alpha1.ChangedAtAnnotation:         dep.Annotations[corev1alpha1.ChangedAtAnnotation],
	}
	if _, err := time.Parse(time.RFC3339, dep.Annotations[corev1alpha1.ChangedAtAnnotation]); err != nil {
		t.Error(err)
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

// A cluster package is the same thing without a namespace.
func TestClusterPackage(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	files := harness.Phased("shop", 1, 1)
	files["phase-00.yaml"] = strings.Replace(files["phase-00.yaml"], "metadata:\n", "metadata:\n  namespace: "+ns+"\n", 1)
	image := env.Push(t, "cluster:v1", files)
	pkg := harness.ClusterPackage("clusterpackage-test", image)
	env.Create(t, pkg)
	env.WaitAvailable(t, "", pkg.Name)
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, patience, pkg)
	env.WaitGone(t, patience, &corev1alpha1.ClusterObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: pkg.Name}})
}
