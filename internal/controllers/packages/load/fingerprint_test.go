package load

import (
	"errors"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
)

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := newPackage(func(p *corev1alpha1.Package) { p.Spec.Config = raw(`{"b":1.0,"a":{"y":2,"x":null}}`) })
	for name, tc := range map[string]struct {
		reason string
		change func(*corev1alpha1.Package)
		same   bool
	}{
		"order of keys": {"the API server sorts them", func(p *corev1alpha1.Package) { p.Spec.Config = raw(`{"a": {"x":null,"y":2}, "b": 1}`) }, true},
		"pause":         {"not content", paused, true},
		"labels":        {"not content", func(p *corev1alpha1.Package) { p.Labels = map[string]string{"a": "b"} }, true},
		"limits":        {"followed without a load", func(p *corev1alpha1.Package) { p.Spec.RevisionHistoryLimit = new(int32) }, true},
		"image":         {"content", func(p *corev1alpha1.Package) { p.Spec.Image += "2" }, false},
		"component":     {"content", func(p *corev1alpha1.Package) { p.Spec.Component = "x" }, false},
		"config value":  {"content", func(p *corev1alpha1.Package) { p.Spec.Config = raw(`{"b":1,"a":{"y":3,"x":null}}`) }, false},
		"no config":     {"content", func(p *corev1alpha1.Package) { p.Spec.Config = nil }, false},
		"slicing": {"the template changes", func(p *corev1alpha1.Package) {
			p.Annotations = map[string]string{corev1alpha1.ChunkingStrategyAnnotation: "NoOp"}
		}, false},
	} {
		changed := base.DeepCopy()
		tc.change(changed)
		if same := printOf(base) == printOf(changed); same != tc.same {
			t.Errorf("%s: same is %t (%s)", name, same, tc.reason)
		}
	}
	// The hash is stored: a different one makes every package load again.
	if got, want := printOf(base).String(), "v1-78712872a00cdaaf0ede59cab347690d-89fe91ff0efff26ab39dd193a3fde086"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if back, ok := parseFingerprint(printOf(base).String()); !ok || back != printOf(base) {
		t.Errorf("read back as %v", back)
	}
}

func TestForeignHashes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		generation int64
		invalid    bool
		want       Unpacked
	}{
		"current":          {"moving in from another engine does not pull", 2, false, UnpackedCurrent},
		"of an older spec": {"it does not describe this one", 1, false, UnpackedNever},
		"invalid":          {"that engine remembered failures as well", 2, true, UnpackedNever},
	} {
		pkg := newPackage()
		pkg.Status.UnpackedHash = strings.Repeat("0f", 32)
		conditions.Set(&pkg.Status.Conditions, tc.generation, corev1alpha1.ConditionUnpacked, true, corev1alpha1.ReasonUnpackSuccess, "")
		if tc.invalid {
			conditions.Set(&pkg.Status.Conditions, tc.generation, corev1alpha1.ConditionInvalid, true, corev1alpha1.ReasonLoadError, "")
		}
		if got := Compare(pkg, printOf(pkg)); got != tc.want {
			t.Errorf("%s: got %d, want %d (%s)", name, got, tc.want, tc.reason)
		}
	}
}

// Each field that a package is rendered from changes the fingerprint; other fields do not.
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
		if got := printOf(newPackage(func(p *corev1alpha1.Package) { change(&p.Spec) })); got.Spec == base.Spec || got.Environment != base.Environment {
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
	one, err := FingerprintOf(newPackage(), origin, env, map[string]string{"Secret team/a": "uid/1"}, "")
	two, err2 := FingerprintOf(newPackage(), origin, env, map[string]string{"Secret team/a": "uid/2"}, "")
	if errors.Join(err, err2) != nil || one == two || one.Spec != base.Spec || one.Environment == base.Environment {
		t.Errorf("a changed source is not a change of the spec: %s, %s, %s", base, one, two)
	}
	one, err = FingerprintOf(newPackage(), origin, env, nil, "a/=b/;0")
	two, err2 = FingerprintOf(newPackage(), origin, env, nil, "a/=c/;0")
	if errors.Join(err, err2) != nil || one == two || one == base || one.Spec != base.Spec {
		t.Errorf("a change of the manager's overrides renders packages again: %s, %s, %s", base, one, two)
	}
}
