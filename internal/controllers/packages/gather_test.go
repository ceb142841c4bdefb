package packages

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// The record of an engine that knew fewer fields stays current: an upgrade of the engine
// renders nothing. Only a new prefix may change this.
func TestFingerprintsOfEarlierEngines(t *testing.T) {
	t.Parallel()
	pkg := newPackage(func(p *corev1alpha1.Package) {
		p.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"b": [1, 2.5], "a": "x"}`)}
		p.Spec.Component = "web"
	})
	const recorded = "v1-25b67c86a84dea55cbd7c56066bce262-89fe91ff0efff26ab39dd193a3fde086"
	if got := printOf(pkg).String(); got != recorded {
		t.Errorf("%s, recorded %s", got, recorded)
	}
}

// Each field that a package is rendered from makes another fingerprint; those that
// it is not rendered from do not.
func TestFingerprintCoversTheSpec(t *testing.T) {
	t.Parallel()
	base := printOf(newPackage())
	for name, change := range map[string]func(*corev1alpha1.PackageSpec){
		"configFrom": func(s *corev1alpha1.PackageSpec) {
			s.ConfigFrom = []corev1alpha1.ValueSource{{ConfigMapKeyRef: &corev1alpha1.ConfigMapKeyReference{Name: "a", Key: "b"}}}
		},
		"patches":             func(s *corev1alpha1.PackageSpec) { s.Patches = []corev1alpha1.PackagePatch{{Patch: "x"}} },
		"commonMetadata":      func(s *corev1alpha1.PackageSpec) { s.CommonMetadata = &corev1alpha1.CommonMetadata{} },
		"defaultNamespace":    func(s *corev1alpha1.PackageSpec) { s.DefaultNamespace = "x" },
		"collisionProtection": func(s *corev1alpha1.PackageSpec) { s.CollisionProtection = corev1alpha1.CollisionProtectionNone },
	} {
		if got := printOf(newPackage(func(p *corev1alpha1.Package) { change(&p.Spec) })); got.spec == base.spec || got.environment != base.environment {
			t.Errorf("%s: %s, without %s", name, got, base)
		}
	}
	for name, change := range map[string]func(*corev1alpha1.PackageSpec){
		"imagePullSecrets": func(s *corev1alpha1.PackageSpec) {
			s.ImagePullSecrets = []corev1alpha1.LocalSecretReference{{Name: "a"}}
		},
		"imagePullPolicy": func(s *corev1alpha1.PackageSpec) { s.ImagePullPolicy = corev1alpha1.ImagePullPolicyNever },
		"driftPolicy":     func(s *corev1alpha1.PackageSpec) { s.DriftPolicy = corev1alpha1.DriftPolicyReport },
		"deletionPolicy":  func(s *corev1alpha1.PackageSpec) { s.DeletionPolicy = corev1alpha1.DeletionPolicyOrphan },
	} {
		if got := printOf(newPackage(func(p *corev1alpha1.Package) { change(&p.Spec) })); got != base {
			t.Errorf("%s: %s, without %s", name, got, base)
		}
	}
	one, err := fingerprintOf(newPackage(), imageChoice.Origin, env, map[string]string{"Secret team/a": "uid/1"}, "")
	two, err2 := fingerprintOf(newPackage(), imageChoice.Origin, env, map[string]string{"Secret team/a": "uid/2"}, "")
	if errors.Join(err, err2) != nil || one == two || one.spec != base.spec || one.environment == base.environment {
		t.Errorf("a source that changes is no change of the spec: %s, %s, %s", base, one, two)
	}
	one, err = fingerprintOf(newPackage(), imageChoice.Origin, env, nil, "a/=b/;0")
	two, err2 = fingerprintOf(newPackage(), imageChoice.Origin, env, nil, "a/=c/;0")
	if errors.Join(err, err2) != nil || one == two || one == base || one.spec != base.spec {
		t.Errorf("a change of the manager's overrides renders packages again: %s, %s, %s", base, one, two)
	}
}

// What else is known beside the spec decides, too.
func TestDecideByInputs(t *testing.T) {
	t.Parallel()
	failed := func(change func(*attempt)) *attempt {
		a := &attempt{In: loadInput{fingerprint: printOf(newPackage())}, Done: true, Err: errors.New("x"), Retry: start.Add(time.Hour), Out: load{dependencies: "before"}}
		change(a)
		return a
	}
	for name, tc := range map[string]struct {
		reason  string
		pkg     *corev1alpha1.Package
		dep     *corev1alpha1.ObjectDeployment
		attempt *attempt
		inputs  inputs
		want    step
	}{
		"someone else's deployment": {
			reason: "it is not ours, whatever is known", pkg: newPackage(), dep: newOwned(controlledBy("Other", "other", "")),
			inputs: inputs{waiting: true}, want: stepYield,
		},
		"sources not known yet":       {reason: "a restart must not take them for absent", pkg: unpackedPackage(), inputs: inputs{waiting: true}, want: stepGather},
		"sources cannot be watched":   {reason: "what would be rendered is not known", pkg: unpackedPackage(), inputs: inputs{inputError: "x"}, want: stepGather},
		"tag has moved":               {reason: "the Package looks after it", pkg: unpackedPackage(), inputs: inputs{newDigest: "sha256:b"}, want: stepLoad},
		"tag has moved, paused":       {reason: "nothing is rolled out while paused", pkg: unpackedPackage(paused), inputs: inputs{newDigest: "sha256:b"}, want: stepPaused},
		"failed":                      {reason: "it is tried again later", pkg: newPackage(), attempt: failed(func(*attempt) {}), inputs: inputs{dependencies: "before"}, want: stepWait},
		"failed, pull secret changed": {reason: "it may work now", pkg: newPackage(), attempt: failed(func(*attempt) {}), inputs: inputs{dependencies: "after"}, want: stepLoad},
		"failed, not known by what":   {reason: "pull secrets are being looked at", pkg: newPackage(), attempt: failed(func(*attempt) {}), want: stepWait},
		"refused, its turn":           {reason: "the obstacle is gone", pkg: newPackage(), attempt: failed(func(a *attempt) { a.Retry = time.Time{} }), inputs: inputs{retryNumber: 1}, want: stepLoad},
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
