package packages

import (
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/testing/signed"
)

// The outcome of a package is that of its image and of all images that its objects name: the first that is not trusted is said.
func TestOutcomesOfWorkloads(t *testing.T) {
	t.Parallel()
	image := func(name string) loader.WorkloadImage {
		return loader.WorkloadImage{Image: "quay.io/" + name + "@sha256:a", By: "container " + name}
	}
	good := &imagepolicy.Outcome{Verified: &imagepolicy.Verified{Authority: "release", Policy: "acme"}}
	bad := &imagepolicy.Outcome{Refusal: by(&imagepolicy.Refusal{Reason: imagepolicy.ReasonNoSignature, Message: "no signature"}, image("bad"))}
	o := outcomes{"quay.io/good@sha256:a": good, "quay.io/fine@sha256:a": good, "quay.io/bad@sha256:a": bad, "quay.io/tagged": nil}
	tagged := loader.WorkloadImage{Image: "quay.io/tagged", By: "container tagged"}
	for name, tc := range map[string]struct {
		own    *imagepolicy.Outcome
		images []loader.WorkloadImage
		want   string
	}{
		"nothing is verified": {nil, nil, ""},
		"no digest":           {nil, []loader.WorkloadImage{tagged}, ""},
		"the package":         {good, nil, "Signed by the authority release of the ImageConfig acme."},
		"workloads":           {nil, []loader.WorkloadImage{image("good"), tagged, image("fine")}, "Images that its objects name and that need a signature: 2, all of them signed."},
		"both":                {good, []loader.WorkloadImage{image("good")}, "Signed by the authority release of the ImageConfig acme. Images that its objects name and that need a signature: 1, all of them signed."},
		"one is warned of":    {good, []loader.WorkloadImage{image("good"), image("bad")}, "the image quay.io/bad@sha256:a (container bad) is not verified: no signature"},
		"the package first":   {&imagepolicy.Outcome{Refusal: &imagepolicy.Refusal{Message: "the package"}}, []loader.WorkloadImage{image("bad")}, "the package"},
	} {
		got := ""
		switch outcome := o.with(tc.own, tc.images); {
		case outcome == nil:
		case outcome.Refusal != nil:
			got = outcome.Refusal.Error()
		default:
			got = outcome.Verified.String()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if good.Verified.Workloads != 0 {
		t.Error("a shared outcome was changed")
	}
	left := o.left([]loader.WorkloadImage{image("good"), image("new"), tagged})
	if len(left) != 1 || left[0] != image("new") {
		t.Errorf("left: %v", left)
	}
}

// Policies that verify images of workloads say which are looked at, and a change of them loads the package again.
func TestPoliciesOfWorkloads(t *testing.T) {
	t.Parallel()
	set := func(key signed.Pair, purposes ...imagepolicy.Purpose) *imagepolicy.Set {
		return imagepolicy.NewSet([]imagepolicy.Policy{{Name: "acme", Prefixes: []string{"quay.io/acme"}, Verification: &imagepolicy.Verification{
			Mode: imagepolicy.Enforce, Purposes: purposes, Authorities: []imagepolicy.Authority{key.Authority()},
		}}}, true, time.Now())
	}
	own := signed.NewPair(t)
	key := func(s *imagepolicy.Set) string {
		return (&view{inputs: inputs{policies: s}}).policyKey("ghcr.io/other")
	}
	digest := "sha256:" + strings.Repeat("a", 64)
	in := &input{policies: set(own, imagepolicy.Workload)}
	if !in.policed("quay.io/acme/web@"+digest) || in.policed("quay.io/other@"+digest) {
		t.Error("policed")
	}
	if other := (&input{policies: set(own, imagepolicy.Package)}); other.policed("quay.io/acme/web@" + digest) {
		t.Error("a policy about packages is about workloads")
	}
	if key(in.policies) == key(set(signed.NewPair(t), imagepolicy.Workload)) || key(set(own, imagepolicy.Repository)) != key(set(signed.NewPair(t), imagepolicy.Repository)) {
		t.Error("another key of workloads is no change, or one of repositories is")
	}
	warnings := in.unpinned([]loader.WorkloadImage{{Image: "quay.io/acme/web:v1", By: "container web"}, {Image: "quay.io/acme/web@sha256:a"}, {}})
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "the image quay.io/acme/web:v1 (container web) has no digest, so that the ImageConfig acme does not verify it") {
		t.Error(warnings)
	}
}
