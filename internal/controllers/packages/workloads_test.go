package packages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
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
	how, ok := in.policed("quay.io/acme/web@" + digest)
	if _, other := in.policed("quay.io/other@" + digest); !ok || other || how != (loader.Policed{Enforced: true, Pinned: true}) {
		t.Error("policed", how)
	}
	if _, ok := (&input{policies: set(own, imagepolicy.Package)}).policed("quay.io/acme/web@" + digest); ok {
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

// warnedAndEnforced is a load by two policies: that of warned.test only warns.
func warnedAndEnforced(t *testing.T) input {
	t.Helper()
	var policies []imagepolicy.Policy
	for host, mode := range map[string]imagepolicy.Mode{"warned.test": imagepolicy.Warn, "enforced.test": imagepolicy.Enforce} {
		policies = append(policies, imagepolicy.Policy{Name: host, Prefixes: []string{host}, Verification: &imagepolicy.Verification{
			Mode: mode, Purposes: []imagepolicy.Purpose{imagepolicy.Workload}, Authorities: []imagepolicy.Authority{signed.NewPair(t).Authority()},
		}})
	}
	pkg := newPackage()
	pkg.Spec.ImagePullPolicy = corev1alpha1.ImagePullPolicyNever // no registry is asked
	return input{pkg: pkg, policies: imagepolicy.NewSet(policies, false, time.Now())}
}

// uses returns an image that an object names, by its number.
func (in *input) uses(host string, number int, change ...func(*loader.WorkloadImage)) loader.WorkloadImage {
	w := loader.WorkloadImage{Image: fmt.Sprintf("%s/%d@sha256:%064d", host, number, number), By: "container " + host}
	w.Policed, _ = in.policed(w.Image)
	for _, c := range change {
		c(&w)
	}
	return w
}

// What may not be verified refuses a package where the policy enforces it, and is a warning where the policy warns.
func TestNextWorkloads(t *testing.T) {
	t.Parallel()
	in := warnedAndEnforced(t)
	many := func(host string, n int) (all []loader.WorkloadImage) {
		for i := range n {
			all = append(all, in.uses(host, i))
		}
		return all
	}
	secret := func(w *loader.WorkloadImage) { w.Image = "" }
	tagged := func(w *loader.WorkloadImage) { w.Image, w.Pinned = strings.Split(w.Image, "@")[0], false }
	for name, tc := range map[string]struct {
		images          []loader.WorkloadImage
		rounds          int
		left            int
		refused, warned string
	}{
		"none":                 {},
		"at the limit":         {images: append(many("warned.test", 100), many("enforced.test", 100)...), left: 200},
		"too many":             {images: many("enforced.test", 101), refused: "the objects of the package name more than 100 images"},
		"too many, warned":     {images: append(many("warned.test", 101), many("enforced.test", 1)...), left: 101, warned: "the objects of the package name more than 100 images"},
		"a secret":             {images: []loader.WorkloadImage{in.uses("enforced.test", 1, secret)}, refused: "its image is a sensitive value"},
		"a secret, warned":     {images: []loader.WorkloadImage{in.uses("warned.test", 1, secret)}, warned: "its image is a sensitive value"},
		"no digest":            {images: []loader.WorkloadImage{in.uses("enforced.test", 1, tagged)}},
		"other images":         {images: many("enforced.test", 1), rounds: limits.WorkloadRounds - 1, refused: "are others each time it is rendered"},
		"other images, warned": {images: many("warned.test", 1), rounds: limits.WorkloadRounds - 1, warned: "are others each time it is rendered"},
	} {
		own := in
		own.workloads.rounds = tc.rounds
		next, err := own.verifyNext(tc.images)
		refused, warned := "", ""
		if err != nil {
			refused = err.Error()
		} else if outcome := next.workloads.known.with(nil, tc.images); outcome != nil {
			warned = outcome.Refusal.Error()
		}
		if !strings.Contains(refused, tc.refused) || (refused == "") != (tc.refused == "") || !strings.Contains(warned, tc.warned) || (warned == "") != (tc.warned == "") {
			t.Errorf("%s: refused %q, warned %q", name, refused, warned)
		}
		if tc.refused == "" && len(next.workloads.left) != tc.left {
			t.Errorf("%s: %d left", name, len(next.workloads.left))
		}
		if tc.left > 100 && !next.workloads.left[0].Enforced {
			t.Errorf("%s: what is warned of takes the time of the others", name)
		}
	}
}

// All images of a package are verified within one time, those of a registry at once; afterwards it is a refusal or a warning.
func TestTimeOfWorkloads(t *testing.T) {
	t.Parallel()
	puller, err := registry.NewPuller(registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, in := &Pipeline{Puller: puller}, warnedAndEnforced(t)
	in.workloads.asked = limits.WorkloadTime
	next, err := in.verifyNext([]loader.WorkloadImage{in.uses("warned.test", 1), in.uses("warned.test", 2), in.uses("enforced.test", 3)})
	if err != nil {
		t.Fatal(err)
	}
	err = loading(t, p, next)
	if refusal := imagepolicy.RefusalOf(err); refusal == nil || !refusal.Unknown() || !strings.Contains(refusal.Error(), "(container enforced.test) is not verified") || !strings.Contains(refusal.Error(), "took longer than 1m0s") {
		t.Errorf("enforced: %v", err)
	}
	next.workloads.left = next.workloads.left[1:]
	var verifying *unfinished
	if err := loading(t, p, next); !errors.As(err, &verifying) || len(verifying.next.workloads.left) > 0 || len(verifying.next.workloads.known) != 2 {
		t.Fatalf("warned: %v", err)
	}
	again, ok := repeated(next, verifying)
	if outcome := again.workloads.known.with(nil, []loader.WorkloadImage{in.uses("warned.test", 1)}); !ok || outcome == nil || !strings.Contains(outcome.Refusal.Error(), "took longer than 1m0s") {
		t.Errorf("warned: %+v", outcome)
	}
}

func loading(t *testing.T, p *Pipeline, in input) error {
	t.Helper()
	_, err := p.load(t.Context(), in)
	return err
}

// A registry of images that objects name, and that hangs, holds no place of loads from the registry of the packages.
func TestHangingRegistryOfWorkloads(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	policies, hanging := warnedAndEnforced(t).policies, make(chan struct{}, limits.LoadsPerHost)
	b.load = func(ctx context.Context, in input) (*content, error) {
		switch {
		case len(in.workloads.left) > 0:
			hanging <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		case strings.Contains(in.image, "hangs"):
			in.policies = policies
			in.workloads.left = []loader.WorkloadImage{in.uses("enforced.test", 1)}
			return nil, &unfinished{in}
		}
		return newContent(), nil
	}
	for i := range 2 * limits.LoadsPerHost {
		b.begin(t, named(fmt.Sprintf("hangs-%d", i), "registry.test/hangs:v1"))
	}
	for range limits.LoadsPerHost {
		<-hanging
	}
	b.begin(t, named("works", "registry.test/works:v1"))
	if got := b.wait(t); got != "works" {
		t.Errorf("woke %s", got)
	}
}
