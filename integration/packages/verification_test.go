package packages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

func imageConfig(name, prefix string, change func(*corev1alpha1.ImageConfigSpec)) *corev1alpha1.ImageConfig {
	config := &corev1alpha1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	config.Spec.MatchImages = []corev1alpha1.ImageMatch{{Prefix: prefix}}
	change(&config.Spec)
	return config
}

func keySecret(name string, key signed.Pair) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: name}, Data: map[string][]byte{"cosign.pub": key.Public},
	}
}

func verifiedBy(secret string, mode corev1alpha1.ImageVerificationMode) func(*corev1alpha1.ImageConfigSpec) {
	return func(spec *corev1alpha1.ImageConfigSpec) {
		spec.Verification = &corev1alpha1.ImageVerification{Mode: mode, Authorities: []corev1alpha1.ImageAuthority{
			{Name: "release", Key: &corev1alpha1.ImageAuthorityKey{SecretRef: &corev1alpha1.ImageKeyRef{Name: secret, Key: "cosign.pub"}}},
		}}
	}
}

// sign attaches a signature to the image that a tag leads to now.
func sign(t *testing.T, image, digest string, key signed.Pair) {
	t.Helper()
	ref, err := name.ParseReference(image, name.Insecure)
	require.NoError(t, err)
	signed.Attach(t, ref.Context(), digest, key.Bundle(t, digest))
}

// digestOf returns the digest of the image that the tag leads to now.
func digestOf(t *testing.T, phases, n int, v string) string {
	t.Helper()
	files := harness.Phased("shop", phases, n)
	for path, content := range files {
		files[path] = strings.ReplaceAll(content, `value: "v1"`, fmt.Sprintf("value: %q", v))
	}
	digest, err := harness.Image(t, files).Digest()
	require.NoError(t, err)
	return digest.String()
}

func verified(status metav1.ConditionStatus, reason string, text ...string) func(*corev1alpha1.Package) error {
	return func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionVerified, status, reason, text...)
	}
}

func configReady(status metav1.ConditionStatus, reason string) func(*corev1alpha1.ImageConfig) error {
	return func(c *corev1alpha1.ImageConfig) error {
		if ready := meta.FindStatusCondition(c.Status.Conditions, corev1alpha1.ConditionReady); ready == nil || ready.Status != status || ready.Reason != reason {
			return fmt.Errorf("%+v", ready)
		}
		return nil
	}
}

// An image without a signature is not rendered. If the key changes, the installed image is verified
// again, and stays installed regardless of the result.
func TestVerification(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	own, other := signed.NewPair(t), signed.NewPair(t)
	image := push(t, 1, 1, "v1")
	repository, _, _ := strings.Cut(image[strings.LastIndex(image, "/"):], ":")
	prefix := image[:strings.LastIndex(image, "/")] + repository
	env.Create(t, keySecret("verification", own))
	env.Create(t, imageConfig("verification", prefix, verifiedBy("verification", corev1alpha1.ImageVerificationEnforce)))
	await(t, &corev1alpha1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "verification"}}, "to count", configReady(metav1.ConditionTrue, corev1alpha1.ReasonInEffect))

	env.Create(t, harness.Package(ns, "shop", image))
	refused := await(t, named(ns), "to be refused", verified(metav1.ConditionFalse, "NoSignature", "the image "+image+" is not verified: the registry has no signature of sha256:", "ImageConfig verification"))
	require.NoError(t,
		harness.HasCondition(refused, corev1alpha1.ConditionStalled, metav1.ConditionTrue, corev1alpha1.ReasonImageNotVerified, "no signature"),
		harness.HasCondition(refused, corev1alpha1.ConditionUnpacked, metav1.ConditionFalse, corev1alpha1.ReasonImageNotVerified, "no signature"))
	dep := &corev1alpha1.ObjectDeployment{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "shop"}, dep); !apierrors.IsNotFound(err) {
		t.Fatalf("something was rendered: %v", err)
	}

	sign(t, image, digestOf(t, 1, 1, "v1"), own)
	env.WaitAvailable(t, ns, "shop")
	await(t, named(ns), "to name the signer", verified(metav1.ConditionTrue, corev1alpha1.ReasonVerified, "Signed by the authority release of the ImageConfig verification."))

	setKey := func(key signed.Pair) {
		harness.Edit(t, env, keySecret("verification", key), func(s *corev1.Secret) { s.Data = keySecret("", key).Data })
	}
	setKey(other)
	await(t, named(ns), "to be verified by the other key", verified(metav1.ConditionFalse, "SignatureInvalid", "the authority release does not accept it"))
	if dep := deployment(t, ns); dep.DeletionTimestamp != nil || len(dep.Spec.Template.Spec.Phases) == 0 {
		t.Errorf("the installed objects were deleted: %+v", dep.Spec.Template.Spec)
	}
	require.NoError(t, harness.HasCondition(shop(t, ns), corev1alpha1.ConditionAvailable, metav1.ConditionTrue, "Available"))
	setKey(own)
	await(t, named(ns), "to be verified again", verified(metav1.ConditionTrue, corev1alpha1.ReasonVerified))
	env.WaitAvailable(t, ns, "shop")

	// The tag points to another image, with the signature of the first one attached.
	require.NoError(t, retag(t, image, harness.Phased("shop", 1, 2)))
	tampered, err := harness.Image(t, harness.Phased("shop", 1, 2)).Digest()
	require.NoError(t, err)
	ref, err := name.ParseReference(image, name.Insecure)
	require.NoError(t, err)
	signed.Attach(t, ref.Context(), tampered.String(), own.Bundle(t, digestOf(t, 1, 1, "v1")))
	env.Create(t, harness.Package(ns, "tampered", image))
	await(t, &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "tampered"}}, "to be refused",
		verified(metav1.ConditionFalse, "SignatureInvalid", "it is a signature of another image"))

	// If two have the same prefix, neither applies.
	env.Create(t, imageConfig("verification-two", prefix+"/", verifiedBy("verification", corev1alpha1.ImageVerificationWarn)))
	for _, config := range []string{"verification", "verification-two"} {
		await(t, &corev1alpha1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: config}}, "to be in conflict", configReady(metav1.ConditionFalse, "Conflicting"))
	}
	await(t, named(ns), "to be refused", verified(metav1.ConditionFalse, "Conflicting", "the ImageConfigs verification and verification-two have the same prefix"))
	require.NoError(t, env.Client.Delete(t.Context(), imageConfig("verification", prefix, func(*corev1alpha1.ImageConfigSpec) {})))
	await(t, &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "tampered"}}, "to be warned of",
		verified(metav1.ConditionFalse, "SignatureInvalid", "(ImageConfig verification-two)"))
	env.WaitCondition(t, ns, "tampered", corev1alpha1.ConditionUnpacked, "True")
	require.NoError(t, env.Client.Delete(t.Context(), imageConfig("verification-two", prefix, func(*corev1alpha1.ImageConfigSpec) {})))
	await(t, named(ns), "to need no signature", func(p *corev1alpha1.Package) error { return lacks(p, corev1alpha1.ConditionVerified) })
}

// Images in objects are rewritten. As with images in locks, an installed package follows a change
// of the ImageConfig at once. The test is not parallel, because a rewrite reloads every package.
func TestRewrittenImagesOfObjects(t *testing.T) {
	ns := env.TestNamespace(t)
	config := imageConfig("rewrite-objects", "origin.example.com/rewrite-objects", func(spec *corev1alpha1.ImageConfigSpec) {
		spec.Rewrite = &corev1alpha1.ImageRewrite{Prefix: env.Registry() + "/rewrite-objects"}
	})
	env.Create(t, config)
	await(t, &corev1alpha1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: config.Name}}, "to count", configReady(metav1.ConditionTrue, corev1alpha1.ReasonInEffect))
	env.Create(t, harness.Package(ns, "shop", env.Push(t, "rewriteobjects:v1", harness.Files{
		"manifest.yaml": harness.Manifest("shop", []string{"all"}, ""),
		"web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  annotations: {package-operator.run/phase: all}\nspec:\n  replicas: 0\n  selector: {matchLabels: {app: web}}\n" +
			"  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: origin.example.com/rewrite-objects/web:v1}]}\n",
	})))
	env.WaitCondition(t, ns, "shop", corev1alpha1.ConditionUnpacked, "True")
	rewritten := func(prefix string) func(*appsv1.Deployment) error {
		return func(d *appsv1.Deployment) error {
			if got, want := d.Spec.Template.Spec.Containers[0].Image, prefix+"/rewrite-objects/web:v1"; got != want {
				return fmt.Errorf("its image is %s, not %s", got, want)
			}
			return nil
		}
	}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	await(t, web, "to name the image where nodes pull it", rewritten(env.Registry()))
	if images := shop(t, ns).Status.Resolved.Images; len(images) != 1 || images[0].Image != env.Registry()+"/rewrite-objects/web:v1" {
		t.Errorf("%+v", images)
	}
	env.Settle(t, ns)
	env.Journal(t).Silent(t, ns)
	harness.Edit(t, env, config, func(c *corev1alpha1.ImageConfig) { c.Spec.MatchImages[0].Prefix = "origin.example.com/another" })
	await(t, web, "to name the image as it is written", rewritten("origin.example.com"))
}

// A key that expires is noticed without another change.
func TestKeyExpires(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	own := signed.NewPair(t)
	image := push(t, 1, 1, "v1")
	sign(t, image, digestOf(t, 1, 1, "v1"), own)
	env.Create(t, imageConfig("key-expires", image[:strings.LastIndex(image, ":")], func(spec *corev1alpha1.ImageConfigSpec) {
		spec.Verification = &corev1alpha1.ImageVerification{Authorities: []corev1alpha1.ImageAuthority{
			{Name: "release", Key: &corev1alpha1.ImageAuthorityKey{PEM: string(own.Public), NotAfter: &metav1.Time{Time: time.Now().Add(8 * time.Second)}}},
		}}
	}))
	await(t, &corev1alpha1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "key-expires"}}, "to count", configReady(metav1.ConditionTrue, corev1alpha1.ReasonInEffect))
	env.Create(t, harness.Package(ns, "shop", image))
	await(t, named(ns), "to expire", verified(metav1.ConditionFalse, "KeyExpired", "valid until"))
}
