package packages_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

// If a key changes, each package is verified again, a shared image only once, without any write of
// objects. If the new key matches no signature, all packages are refused, and the installed objects
// stay.
func TestKeyOfManyPackages(t *testing.T) {
	t.Parallel()
	packages := 10
	if harness.Deep() {
		packages = 500
	}
	ns := env.TestNamespace(t)
	own, next, unknown := signed.NewPair(t), signed.NewPair(t), signed.NewPair(t)
	repository := counting().host + "/keys"
	image := repository + ":v1"
	files := harness.Files{
		"manifest.yaml":  harness.Manifest("shop", []string{"all"}, ""),
		"cm.yaml.gotmpl": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .package.metadata.name }}\n  annotations: {package-operator.run/phase: all}\n",
	}
	require.NoError(t, retag(t, image, files))
	ref, err := name.ParseReference(image, name.Insecure)
	require.NoError(t, err)
	digest, err := harness.Image(t, files).Digest()
	require.NoError(t, err)
	for _, key := range []signed.Pair{own, next} {
		signed.Attach(t, ref.Context(), digest.String(), key.Bundle(t, digest.String()))
	}
	env.Create(t, keySecret("keys", own))
	env.Create(t, imageConfig("keys", repository, verifiedBy("keys", corev1alpha1.ImageVerificationEnforce)))
	await(t, &corev1alpha1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "keys"}}, "to count", configReady(metav1.ConditionTrue, corev1alpha1.ReasonInEffect))
	for i := range packages {
		env.Create(t, harness.Package(ns, fmt.Sprintf("shop-%03d", i), image))
	}
	loaded := map[string]string{} // hashes of the inputs of rendering, by package
	all := func(what string, done func(*corev1alpha1.Package) error) {
		t.Helper()
		harness.Eventually(t, patience+time.Duration(packages)*400*time.Millisecond, what, func(ctx context.Context) error {
			list := &corev1alpha1.PackageList{}
			if err := env.Client.List(ctx, list, client.InNamespace(ns)); err != nil {
				return err
			}
			for i := range list.Items {
				if err := done(&list.Items[i]); err != nil {
					return fmt.Errorf("%s: %w", list.Items[i].Name, err)
				}
			}
			maps.Copy(loaded, hashesOf(list.Items))
			return nil
		})
	}
	again := func(p *corev1alpha1.Package) error {
		if p.Status.UnpackedHash == loaded[p.Name] {
			return fmt.Errorf("not verified again")
		}
		if err := verified(metav1.ConditionTrue, corev1alpha1.ReasonVerified)(p); err != nil {
			return err
		}
		return harness.HasCondition(p, corev1alpha1.ConditionReady, metav1.ConditionTrue, "")
	}
	all("all are installed", again)
	setKey := func(key signed.Pair) (*harness.Journal, func() map[string]int) {
		env.Settle(t, ns)
		asked, journal := counting().about("keys"), env.Journal(t)
		harness.Edit(t, env, keySecret("keys", key), func(s *corev1.Secret) { s.Data = keySecret("", key).Data })
		return journal, func() map[string]int { return since(asked, counting().about("keys")) }
	}

	journal, asked := setKey(next)
	all("all are verified by the next key", again)
	requests, registry := harness.Tally(journal.Rest(t, ns)), asked()
	if registry["GET"] > 10 || registry["HEAD"] > packages {
		t.Errorf("the registry was asked %v; the signatures are of one image", registry)
	}
	for what, n := range requests {
		if n > 3*packages || strings.Contains(what, "objectset") || strings.Contains(what, "configmap") {
			t.Errorf("%d times %s", n, what)
		}
	}

	setKey(unknown)
	all("all are refused", verified(metav1.ConditionFalse, "SignatureInvalid", "the authority release does not accept it"))
	configMaps := &corev1.ConfigMapList{}
	require.NoError(t, env.Client.List(t.Context(), configMaps, client.InNamespace(ns), client.HasLabels{corev1alpha1.PackageLabel}))
	if len(configMaps.Items) != packages {
		t.Errorf("of %d installed objects %d are there", packages, len(configMaps.Items))
	}
}

func since(before, after map[string]int) map[string]int {
	out := map[string]int{}
	for method, n := range after {
		if n -= before[method]; n > 0 {
			out[method] = n
		}
	}
	return out
}

// hashesOf returns the hash of each package's inputs of rendering, by name.
func hashesOf(packages []corev1alpha1.Package) map[string]string {
	out := map[string]string{}
	for i := range packages {
		out[packages[i].Name] = packages[i].Status.UnpackedHash
	}
	return out
}
