package packages

import (
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/test/require"
)

// While a repository was never fetched, a refusal is not final.
func TestPendingRefusalDoesNotStall(t *testing.T) {
	t.Parallel()
	for _, pending := range []bool{true, false} {
		c := choice.Choice{Reason: corev1alpha1.ReasonUnknownPackage, Pending: pending}
		if state := kstatusOf(view{pkg: newPackage(follows("^1")), choice: c, outcome: outcome{step: stepHold}}, false); state.Ready || state.Stalled == pending {
			t.Errorf("pending %t: %+v", pending, state)
		}
	}
}

// A refusal never changes the installed version; the rest of the spec is followed if that version
// still fits.
func TestRefusalsHoldWhatIsInstalled(t *testing.T) {
	t.Parallel()
	pkg := newPackage(follows("^1"), hasVersion("1.0.0"))
	for name, tc := range map[string]struct {
		choice choice.Choice
		change bool
		want   step
	}{
		"no other change":            {choice.Choice{Origin: choice.Installed(pkg), Reason: corev1alpha1.ReasonNoMatchingVersion}, false, stepSync},
		"the version still fits":     {choice.Choice{Origin: choice.Installed(pkg), Reason: corev1alpha1.ReasonDowngradeRefused, Fits: true}, true, stepLoad},
		"the version does not fit":   {choice.Choice{Origin: choice.Installed(pkg), Reason: corev1alpha1.ReasonNoMatchingVersion}, true, stepHold},
		"nothing is installed":       {choice.Choice{Reason: corev1alpha1.ReasonUnknownPackage}, true, stepHold},
		"manifests were withdrawn":   {choice.Choice{Origin: choice.Origin{Digest: digest, Version: "1.0.0"}, Reason: corev1alpha1.ReasonUnknownPackage, Fits: true}, true, stepHold},
		"a version that was chosen":  {choice.Choice{Origin: choice.Origin{Image: "new", Version: "1.1.0"}, Reason: corev1alpha1.ReasonResolved}, true, stepLoad},
		"the version that it is now": {choice.Choice{Origin: choice.Installed(pkg), Reason: corev1alpha1.ReasonResolved}, false, stepSync},
	} {
		v := view{pkg: pkg.DeepCopy(), dep: newOwned(), choice: tc.choice, now: start}
		unpacked, err := load.FingerprintOf(pkg, choice.Installed(pkg), env, nil, "")
		require.NoError(t, err)
		v.pkg.PackageStatus().UnpackedHash = unpacked.String()
		if tc.change {
			v.pkg.PackageSpec().Component = "changed"
		}
		if v.fingerprint, err = load.FingerprintOf(v.pkg, tc.choice.Origin, env, nil, ""); err != nil {
			t.Fatal(err)
		}
		if got, _ := decide(v); got != tc.want {
			t.Errorf("%s: step %d, want %d", name, got, tc.want)
		}
		v.step, _ = decide(v)
		state := kstatusOf(v, observed(v))
		if strings.Contains(state.Message, "other changes of the spec wait") != (tc.choice.Refused() && tc.want == stepHold) {
			t.Errorf("%s: %s", name, state.Message)
		}
		if state.Stalled != tc.choice.Refused() || tc.choice.Refused() && state.Reason != tc.choice.Reason {
			t.Errorf("%s: %+v", name, state)
		}
	}
}

// follows makes a Package follow a constraint.
func follows(constraint string) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) {
		pkg.Spec.Image = ""
		pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: "shop", VersionSelection: corev1alpha1.VersionSelection{Version: constraint}}
	}
}

// hasVersion makes a Package have installed a version that was chosen.
func hasVersion(version string) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) {
		pkg.Status.LastAttempted = &corev1alpha1.AttemptedVersion{PackageName: "shop", Version: version}
		pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{
			PackageName: "shop", Version: version, Image: image + "-" + version, Digest: digest, Repository: "PackageRepository/stable",
		}
		conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionResolved, true, corev1alpha1.ReasonResolved, "")
	}
}
