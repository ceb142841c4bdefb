package packages_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// If an image does not exist, the status reports it, all objects stay unchanged, and the pull is
// retried.
func TestMissingImage(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	from := env.Journal(t)
	image := env.Registry() + "/missingimage:v1"
	env.Create(t, harness.Package(ns, "shop", image))
	await(t, named(ns), "to report the image", func(p *corev1alpha1.Package) error {
		return errors.Join(
			harness.HasCondition(p, corev1alpha1.ConditionUnpacked, metav1.ConditionFalse, corev1alpha1.ReasonImagePullBackOff, image),
			harness.HasCondition(p, corev1alpha1.ConditionReady, metav1.ConditionFalse, corev1alpha1.ReasonImagePullBackOff),
			harness.HasCondition(p, corev1alpha1.ConditionStalled, metav1.ConditionTrue, corev1alpha1.ReasonImagePullBackOff),
			lacks(p, corev1alpha1.ConditionInvalid), lacks(p, corev1alpha1.ConditionAvailable))
	})
	counts := harness.Tally(from.Rest(t, ns))
	// A pull that takes longer than limits.PackageStatusInterval is reported to have started.
	if writes := counts["update packages/status"]; writes == 0 || writes > 2 || counts["create objectdeployments"] != 0 {
		t.Errorf("%v", counts)
	}
	env.Settle(t, ns)
	if reasons := events(t, ns); fmt.Sprint(reasons) != "[Warning/ImagePullBackOff]" {
		t.Errorf("events: %v", reasons)
	}
	// It appears, and the next try, at most 10 s later, finds it.
	env.Push(t, "missingimage:v1", harness.Phased("shop", 1, 1))
	env.WaitAvailable(t, ns, "shop")
	require.NoError(t, lacks(shop(t, ns), corev1alpha1.ConditionStalled))
}

// An invalid package reports the position of the error. The manager writes none of its objects,
// and does not retry until its spec changes.
func TestWrongPackage(t *testing.T) {
	t.Parallel()
	ns, v1 := env.TestNamespace(t), push(t, 1, 2, "v1")
	install(t, ns, v1)
	env.Settle(t, ns)
	before := deployment(t, ns)
	broken := harness.Phased("shop", 1, 2)
	broken["other.yaml"] = harness.ConfigMap("other", "nowhere", "x")
	broken["more.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n"
	image := env.Push(t, "wrongpackage:v2", broken)
	from := env.Journal(t)
	env.SetImage(t, ns, "shop", image)
	await(t, named(ns), "to report the fault", func(p *corev1alpha1.Package) error {
		return errors.Join(
			harness.HasCondition(p, corev1alpha1.ConditionInvalid, metav1.ConditionTrue, "", "other.yaml", "more.yaml", "nowhere"),
			harness.HasCondition(p, corev1alpha1.ConditionUnpacked, metav1.ConditionFalse, ""),
			harness.HasCondition(p, corev1alpha1.ConditionStalled, metav1.ConditionTrue, ""),
			harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""))
	})
	// A pull that takes longer than limits.PackageStatusInterval is reported to have started.
	counts := harness.Tally(from.Rest(t, ns))
	if writes := counts["update packages/status"]; writes == 0 || writes > 2 || counts["patch objectdeployments"] != 0 {
		t.Errorf("%v", counts)
	}
	if after := deployment(t, ns); after.ResourceVersion != before.ResourceVersion {
		t.Error("the deployment was written")
	}
	env.SetImage(t, ns, "shop", push(t, 1, 2, "v3"))
	env.WaitAvailable(t, ns, "shop")
	require.NoError(t, lacks(shop(t, ns), corev1alpha1.ConditionInvalid), lacks(shop(t, ns), corev1alpha1.ConditionStalled))
}

// A tag that moves is not followed until the spec changes, also when the
// deployment has to be made again.
func TestMovedTag(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	image := push(t, 1, 1, "v1")
	install(t, ns, image)
	digest := shop(t, ns).Status.Resolved.Digest
	moved := harness.Phased("shop", 1, 5)
	require.NoError(t, retag(t, image, moved))

	dep := deployment(t, ns)
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	again := await(t, &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop"}}, "to be made again", func(d *corev1alpha1.ObjectDeployment) error {
		if d.UID == dep.UID || len(d.Spec.Template.Spec.Phases) == 0 {
			return errors.New("it is still the former one, or has no content yet")
		}
		return nil
	})
	if n := len(again.Spec.Template.Spec.Phases[0].Objects); n != 1 {
		t.Fatalf("it was made of what the tag stands for now, which has %d objects", n)
	}
	env.WaitAvailable(t, ns, "shop")
	if pkg := shop(t, ns); pkg.Status.Resolved.Digest != digest || pkg.Status.Phases[0].Total != 1 {
		t.Errorf("%+v", pkg.Status)
	}
	harness.Edit(t, env, named(ns), func(p *corev1alpha1.Package) { p.Spec.Config = &runtime.RawExtension{Raw: []byte(`{}`)} })
	await(t, named(ns), "to follow the tag", func(p *corev1alpha1.Package) error {
		if p.Status.Resolved.Digest == digest || len(p.Status.Phases) != 1 || p.Status.Phases[0].Total != 5 {
			return fmt.Errorf("%+v", p.Status)
		}
		return nil
	})
}

func retag(t *testing.T, image string, files harness.Files) error {
	t.Helper()
	ref, err := name.ParseReference(image, name.Insecure)
	if err != nil {
		return err
	}
	return remote.Write(ref, harness.Image(t, files), remote.WithContext(t.Context()), remote.WithTransport(http.DefaultTransport))
}
