package packages

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	ggcrremote "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/test/signed"
)

func refuseImage(pkg *corev1alpha1.Package) {
	conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionUnpacked, false, corev1alpha1.ReasonImageNotVerified, "no signature")
}

// The condition Verified is that of the last load that has ended.
func TestReportVerified(t *testing.T) {
	t.Parallel()
	refusal := &imagepolicy.Refusal{Reason: imagepolicy.ReasonNoSignature, Message: "the registry has no signature"}
	away := imagepolicy.Unreachable(&registry.PullError{Reason: registry.ReasonTimeout, Details: "no answer", Temporary: true})
	loaded := func(outcome *imagepolicy.Outcome) *attempt {
		a := &attempt{Done: true}
		a.Out.content = &content{verification: outcome}
		return a
	}
	for name, tc := range map[string]struct {
		attempt *attempt
		want    string
	}{
		"no load":       {nil, "True/Verified/before"},
		"loading":       {&attempt{Err: refusal}, "True/Verified/before"},
		"another error": {&attempt{Done: true, Err: errors.New("no route")}, "True/Verified/before"},
		"not required":  {loaded(nil), ""},
		"verified":      {loaded(&imagepolicy.Outcome{Verified: &imagepolicy.Verified{Authority: "a", Policy: "p", Subject: "s", Issuer: "i"}}), "True/Verified/Signed by the authority a of the ImageConfig p as s (i)."},
		"warned":        {loaded(&imagepolicy.Outcome{Refusal: refusal}), "False/NoSignature/the registry has no signature."},
		"refused":       {&attempt{Done: true, Err: refusal.About("ghcr.io/a")}, "False/NoSignature/the image ghcr.io/a is not verified: the registry has no signature."},
		"unreachable":   {&attempt{Done: true, Err: away}, "Unknown/RegistryUnreachable/its signatures cannot be read: pull image \"\": timeout: no answer."},
	} {
		status := &corev1alpha1.PackageStatus{}
		conditions.Set(&status.Conditions, 1, corev1alpha1.ConditionVerified, true, corev1alpha1.ReasonVerified, "before")
		reportVerified(status, view{pkg: newPackage(), inputs: inputs{}, attempt: tc.attempt})
		got := ""
		if c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionVerified); c != nil {
			got = strings.Join([]string{string(c.Status), c.Reason, c.Message}, "/")
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	for err, stalled := range map[error]bool{refusal: true, away: false} {
		if state, ok := imageconfigs.NotVerified(err); !ok || state.Stalled != stalled || state.Reason != corev1alpha1.ReasonImageNotVerified {
			t.Errorf("%v: %+v", err, state)
		}
	}
	if _, ok := imageconfigs.NotVerified(errors.New("no route")); ok {
		t.Error("every error is about a signature")
	}
}

// A Package about which the policies say nothing has the fingerprint that it has without policies, so that an upgrade renders nothing.
func TestPolicyKey(t *testing.T) {
	t.Parallel()
	policy := func(prefix string) imagepolicy.Policy {
		return imagepolicy.Policy{Name: "a", Prefixes: []string{prefix}, Verification: &imagepolicy.Verification{
			Purposes:    []imagepolicy.Purpose{imagepolicy.Package},
			Authorities: []imagepolicy.Authority{signed.NewPair(t).Authority()},
		}}
	}
	key := func(image string, required bool, policies ...imagepolicy.Policy) string {
		v := view{inputs: inputs{policies: imagepolicy.NewSet(policies, required, time.Now())}}
		return v.policyKey(image)
	}
	const image = "ghcr.io/acme/shop:v1"
	if got := (&view{}).policyKey(image) + key(image, false) + key(image, false, policy("quay.io")) + key("", false, policy("ghcr.io")); got != "" {
		t.Errorf("nothing is said, by %q", got)
	}
	verified := policy("ghcr.io/acme")
	seen := map[string]bool{}
	for _, got := range []string{
		key(image, false, verified), key(image, false, policy("ghcr.io/acme")), key(image, true), key("", true),
		key(image, false, imagepolicy.Policy{Name: "a", Prefixes: []string{"ghcr.io"}, Rewrite: "mirror.example.com"}),
		key("", false, imagepolicy.Policy{Name: "a", Prefixes: []string{"ghcr.io"}, Rewrite: "mirror.example.com"}),
	} {
		if got == "" || seen[got] {
			t.Errorf("%q says too little", got)
		}
		seen[got] = true
	}
}

// A package waits in silence only while ImageConfigs are read for the first time: why they cannot be read is on its status.
func TestPoliciesThatAreNotKnown(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]struct {
		waiting bool
		message string
	}{
		nil:                     {},
		imageconfigs.ErrNotRead: {waiting: true},
		errors.New("Secret lockstep/key cannot be read: forbidden"): {message: "Waiting for ImageConfigs: Secret lockstep/key cannot be read: forbidden"},
	} {
		s := &reconciliation{Reconciler: &Reconciler{Options: Options{Policies: func() (*imagepolicy.Set, error) { return nil, err }}}}
		s.gatherPolicies()
		if s.waiting != want.waiting || s.inputError != want.message {
			t.Errorf("%v: %t %q", err, s.waiting, s.inputError)
		}
	}
}

// The digest that was verified is the one that is pulled, though the tag leads to another image by then.
func TestTagMovesAfterVerification(t *testing.T) {
	t.Parallel()
	own, swap := signed.NewPair(t), func() {}
	inner := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/referrers/") {
			swap()
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	ref, err := name.ParseReference(host+"/shop:v1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	push := func(text string) string {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		_ = w.WriteHeader(&tar.Header{Name: "package/manifest.yaml", Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o644})
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		image, err := mutate.AppendLayers(empty.Image, static.NewLayer(b.Bytes(), types.OCIUncompressedLayer))
		if err == nil {
			err = ggcrremote.Write(ref, image)
		}
		if err != nil {
			t.Fatal(err)
		}
		digest, _ := image.Digest()
		return digest.String()
	}
	digest := push("good")
	signed.Attach(t, ref.Context(), digest, own.Bundle(t, digest))
	swapped := ""
	swap = func() {
		if swapped == "" {
			swapped = push("evil")
		}
	}
	puller, err := registry.NewPuller(registry.Options{InsecureRegistries: []string{host}})
	if err != nil {
		t.Fatal(err)
	}
	policies := []imagepolicy.Policy{{Name: "p", Prefixes: []string{host}, Verification: &imagepolicy.Verification{
		Mode: imagepolicy.Enforce, Purposes: []imagepolicy.Purpose{imagepolicy.Package}, Authorities: []imagepolicy.Authority{own.Authority()},
	}}}
	in := input{pkg: newPackage(), image: ref.String(), policies: imagepolicy.NewSet(policies, false, time.Now())}
	in.origin.Image = in.image
	p := &Pipeline{Puller: puller, ClusterPullSecrets: true, Credentials: &sources.Credentials{}, Memory: quota.New(0)}
	admit := func() error { return nil }
	image, outcome, err := p.pull(t.Context(), in, admit)
	if err != nil || swapped == "" || image.Digest != digest || string(image.Files["manifest.yaml"]) != "good" || outcome.Verified == nil {
		t.Fatalf("%v, %+v, %+v, the tag leads to %s", err, image, outcome, swapped)
	}
	_, _, err = p.pull(t.Context(), in, admit)
	if refusal := imagepolicy.RefusalOf(err); refusal == nil || refusal.Reason != imagepolicy.ReasonNoSignature || !strings.Contains(refusal.Message, "no signature of "+swapped) {
		t.Errorf("the other image: %v", err)
	}
}
