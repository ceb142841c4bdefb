package packages

import (
	"errors"
	"testing"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
)

// Inputs other than the spec decide, too.
func TestDecideByInputs(t *testing.T) {
	t.Parallel()
	failed := func(change func(*load.Attempt)) *load.Attempt {
		a := &load.Attempt{In: load.Input{Fingerprint: printOf(newPackage())}, Done: true, Err: errors.New("x"), Retry: start.Add(time.Hour), Out: load.Out{Dependencies: "before"}}
		change(a)
		return a
	}
	for name, tc := range map[string]struct {
		reason  string
		pkg     *corev1alpha1.Package
		dep     *corev1alpha1.ObjectDeployment
		attempt *load.Attempt
		inputs  inputs
		want    step
	}{
		"a foreign deployment": {
			reason: "it is not ours in any case", pkg: newPackage(), dep: newOwned(controlledBy("Other", "other", "")),
			inputs: inputs{waiting: true}, want: stepYield,
		},
		"sources not known yet":       {reason: "a restart must not take them for absent", pkg: unpackedPackage(), inputs: inputs{waiting: true}, want: stepGather},
		"sources cannot be watched":   {reason: "what would be rendered is not known", pkg: unpackedPackage(), inputs: inputs{inputError: "x"}, want: stepGather},
		"tag has moved":               {reason: "the Package looks after it", pkg: unpackedPackage(), inputs: inputs{newDigest: "sha256:b"}, want: stepLoad},
		"tag has moved, paused":       {reason: "no rollout while paused", pkg: unpackedPackage(paused), inputs: inputs{newDigest: "sha256:b"}, want: stepPaused},
		"failed":                      {reason: "it is tried again later", pkg: newPackage(), attempt: failed(func(*load.Attempt) {}), inputs: inputs{dependencies: "before"}, want: stepWait},
		"failed, pull secret changed": {reason: "it can work now", pkg: newPackage(), attempt: failed(func(*load.Attempt) {}), inputs: inputs{dependencies: "after"}, want: stepLoad},
		"failed, not known by what":   {reason: "pull secrets are being looked at", pkg: newPackage(), attempt: failed(func(*load.Attempt) {}), want: stepWait},
		"refused, its turn":           {reason: "the obstacle was removed", pkg: newPackage(), attempt: failed(func(a *load.Attempt) { a.Retry = time.Time{} }), inputs: inputs{retryNumber: 1}, want: stepLoad},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.dep == nil {
				tc.dep = newOwned()
			}
			v := view{pkg: tc.pkg, choice: imageChoice, dep: tc.dep, fingerprint: printOf(tc.pkg), attempt: tc.attempt, inputs: tc.inputs, now: start}
			if got, _ := decide(v); got != tc.want {
				t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestPropagation(t *testing.T) {
	t.Parallel()
	for policy, want := range map[corev1alpha1.DeletionPolicy]string{
		"": "Background", corev1alpha1.DeletionPolicyDelete: "Background", corev1alpha1.DeletionPolicyOrphan: "Orphan",
	} {
		if got := propagation(&corev1alpha1.PackageSpec{DeletionPolicy: policy}); string(got) != want {
			t.Errorf("%q: %s, want %s", policy, got, want)
		}
	}
}

func TestWithLookupError(t *testing.T) {
	t.Parallel()
	told := withLookupError("Loaded.", "no route")
	if told == "Loaded." || withLookupError(told, "no route") != told || withLookupError(told, "") != "Loaded." {
		t.Errorf("%q", told)
	}
}
