package packages

import (
	"testing"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// A stored deployment equals the made one, with defaults and in any order of keys. Any difference
// means that another client edited it, or that a crash left it incomplete.
func TestEdited(t *testing.T) {
	t.Parallel()
	phases := func(d *corev1alpha1.ObjectDeployment) *[]corev1alpha1.ObjectSetTemplatePhase {
		return &d.Spec.Template.Spec.Phases
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*corev1alpha1.ObjectDeployment)
		want   bool
	}{
		"as it was made": {reason: "usual", change: func(*corev1alpha1.ObjectDeployment) {}},
		"stored": {reason: "the API server sorts keys and fills defaults in", change: func(d *corev1alpha1.ObjectDeployment) {
			(*phases(d))[0].Objects[0].Object = raw(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`)
			(*phases(d))[0].Objects[0].CollisionProtection = corev1alpha1.CollisionProtectionPrevent
		}},
		"paused by hand": {reason: "settings are followed without a load", change: func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = true }},
		"stored without empty fields": {reason: "the API server leaves it out", change: func(d *corev1alpha1.ObjectDeployment) {
			(*phases(d))[0].Objects[0].Object = raw(`{"apiVersion":"v1","data":null,"kind":"ConfigMap","metadata":{"creationTimestamp":null,"labels":{},"name":"a","other":1}}`)
		}},
		"edited": {reason: "it differs from the package", want: true, change: func(d *corev1alpha1.ObjectDeployment) {
			(*phases(d))[0].Objects[0].Object = raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`)
		}},
		"not complete": {reason: "the process ended before it wrote the template that names slices", want: true, change: func(d *corev1alpha1.ObjectDeployment) {
			*phases(d) = nil
		}},
		"of an earlier engine": {reason: "nothing was recorded", change: func(d *corev1alpha1.ObjectDeployment) {
			*phases(d) = nil
			delete(d.Annotations, corev1alpha1.TemplateDigestAnnotation)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg := unpackedPackage()
			dep := shaped(t, deployment.New(pkg), pkg, newContent()).(*corev1alpha1.ObjectDeployment)
			memory := &deployment.Template{}
			dep.UID, dep.Generation = "dep-uid", 1
			if known, err := memory.Drifted(dep); known || err != nil {
				t.Fatalf("the deployment just made is edited: %t, %v", known, err)
			}
			tc.change(dep)
			dep.Generation++
			got, err := memory.Drifted(dep)
			if err != nil || got != tc.want {
				t.Errorf("edited = %t, %v: %s", got, err, tc.reason)
			}
			want := stepSync
			if tc.want {
				want = stepLoad
			}
			if step, _ := decide(view{pkg: pkg, choice: imageChoice, dep: dep, fingerprint: printOf(pkg), drifted: got, now: start}); step != want {
				t.Errorf("step %d, want %d", step, want)
			}
		})
	}
	pkg := unpackedPackage()
	dep := shaped(t, deployment.New(pkg), pkg, newContent())
	for name, tc := range map[string]struct {
		v    view
		want step
	}{
		"repaired a moment ago": {view{pkg: pkg, choice: imageChoice, repaired: start.Add(-time.Second)}, stepSync},
		"repaired before":       {view{pkg: pkg, choice: imageChoice, repaired: start.Add(-limits.RepairInterval)}, stepLoad},
		"paused":                {view{pkg: unpackedPackage(paused), choice: imageChoice}, stepSync},
	} {
		tc.v.dep, tc.v.fingerprint, tc.v.drifted, tc.v.now = dep, printOf(pkg), true, start
		if got, _ := decide(tc.v); got != tc.want {
			t.Errorf("%s: step %d, want %d", name, got, tc.want)
		}
	}
}

// shaped is a deployment as a Package has it.
func shaped(t *testing.T, dep corev1alpha1.GenericObjectDeployment, pkg *corev1alpha1.Package, content *load.Content) corev1alpha1.GenericObjectDeployment {
	t.Helper()
	dep = dep.DeepCopyObject().(corev1alpha1.GenericObjectDeployment)
	Accounts{}.copySettings(dep, pkg)
	require.NoError(t, deployment.Fill(dep, pkg, printOf(pkg), content, content.Template, nil))
	return dep
}
