package packages

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/test/signed"
)

func refuseImage(pkg *corev1alpha1.Package) {
	conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionUnpacked, false, corev1alpha1.ReasonImageNotVerified, "no signature")
}

// The condition Verified describes the last load that has ended.
func TestReportVerified(t *testing.T) {
	t.Parallel()
	refusal := &imagepolicy.Refusal{Reason: imagepolicy.ReasonNoSignature, Message: "the registry has no signature"}
	away := imagepolicy.Unreachable(&registry.PullError{Reason: registry.ReasonTimeout, Details: "no answer", Temporary: true})
	loaded := func(outcome *imagepolicy.Outcome) *load.Attempt {
		a := &load.Attempt{Done: true}
		a.Out.Content = &load.Content{Verification: outcome}
		return a
	}
	for name, tc := range map[string]struct {
		attempt *load.Attempt
		want    string
	}{
		"no load":       {nil, "True/Verified/before"},
		"loading":       {&load.Attempt{Err: refusal}, "True/Verified/before"},
		"another error": {&load.Attempt{Done: true, Err: errors.New("no route")}, "True/Verified/before"},
		"not required":  {loaded(nil), ""},
		"verified":      {loaded(&imagepolicy.Outcome{Verified: &imagepolicy.Verified{Authority: "a", Policy: "p", Subject: "s", Issuer: "i"}}), "True/Verified/Signed by the authority a of the ImageConfig p as s (i)."},
		"warned":        {loaded(&imagepolicy.Outcome{Refusal: refusal}), "False/NoSignature/the registry has no signature."},
		"refused":       {&load.Attempt{Done: true, Err: refusal.About("ghcr.io/a")}, "False/NoSignature/the image ghcr.io/a is not verified: the registry has no signature."},
		"unreachable":   {&load.Attempt{Done: true, Err: away}, "Unknown/RegistryUnreachable/its signatures cannot be read: pull image \"\": timeout: no answer."},
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

// A Package without applicable policies has the same fingerprint as without any policies, so that
// an upgrade does not render it again.
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
		t.Errorf("no message, by %q", got)
	}
	verified := policy("ghcr.io/acme")
	seen := map[string]bool{}
	for _, got := range []string{
		key(image, false, verified), key(image, false, policy("ghcr.io/acme")), key(image, true), key("", true),
		key(image, false, imagepolicy.Policy{Name: "a", Prefixes: []string{"ghcr.io"}, Rewrite: "mirror.example.com"}),
		key("", false, imagepolicy.Policy{Name: "a", Prefixes: []string{"ghcr.io"}, Rewrite: "mirror.example.com"}),
	} {
		if got == "" || seen[got] {
			t.Errorf("%q is incomplete", got)
		}
		seen[got] = true
	}
}

// A package waits without a message only while ImageConfigs are read for the first time. If they
// cannot be read, its status has the reason.
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
