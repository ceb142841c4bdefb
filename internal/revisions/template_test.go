package revisions_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/revisions"
	"lockstep.run/lockstep/test/conformance"
	"lockstep.run/lockstep/test/require"
)

// TestDescribes checks that a status reflects the template and labels of its hash, at its own
// generation.
func TestDescribes(t *testing.T) {
	t.Parallel()
	reported := func(change func(*corev1alpha1.ObjectDeployment)) *corev1alpha1.ObjectDeployment {
		dep := &corev1alpha1.ObjectDeployment{}
		dep.Generation, dep.Status.ObservedGeneration = 3, 3
		dep.Labels = map[string]string{corev1alpha1.PackageVersionLabel: "1.0.0", "team": "a"}
		dep.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one"}}
		digest, err := revisions.SpecDigest(dep.Spec.Template.Spec)
		require.NoError(t, err)
		dep.Status.TemplateHash = revisions.TemplateHash(digest, revisions.WellKnown(dep))
		change(dep)
		return dep
	}

	for _, tc := range []struct {
		name   string
		change func(*corev1alpha1.ObjectDeployment)
		want   bool
	}{
		{"as reported", func(*corev1alpha1.ObjectDeployment) {}, true},
		{"another generation", func(d *corev1alpha1.ObjectDeployment) { d.Generation++ }, false},
		{"another version", func(d *corev1alpha1.ObjectDeployment) { d.Labels[corev1alpha1.PackageVersionLabel] = "1.1.0" }, false},
		{"no version", func(d *corev1alpha1.ObjectDeployment) { delete(d.Labels, corev1alpha1.PackageVersionLabel) }, false},
		{"a label that objects do not get", func(d *corev1alpha1.ObjectDeployment) { d.Labels["team"] = "b" }, true},
		{"another template of the generation", func(d *corev1alpha1.ObjectDeployment) { d.Spec.Template.Spec.Phases[0].Name = "two" }, false},
		{"no hash", func(d *corev1alpha1.ObjectDeployment) { d.Status.TemplateHash = "" }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, revisions.Describes(reported(tc.change)), "Describes")
		})
	}
}

// TestSpecDigestOfLargeIntegers checks that integers beyond 2^53 are not rounded.
func TestSpecDigestOfLargeIntegers(t *testing.T) {
	t.Parallel()
	digest := func(number string) objects.Digest {
		object := corev1alpha1.ObjectSetObject{Object: runtime.RawExtension{Raw: []byte(`{"spec":{"limit":` + number + `}}`)}}
		d, err := revisions.SpecDigest(corev1alpha1.ObjectSetTemplateSpec{Phases: []corev1alpha1.ObjectSetTemplatePhase{{Objects: []corev1alpha1.ObjectSetObject{object}}}})
		require.NoError(t, err)
		return d
	}
	if digest("9007199254740992") == digest("9007199254740993") {
		t.Error("two templates have the same digest")
	}
}

// TestTemplateHash pins the hash, which depends on the JSON that the API server stores. A different
// hash makes a new revision of every deployment.
func TestTemplateHash(t *testing.T) {
	t.Parallel()
	hash := func(object string) string {
		spec := corev1alpha1.ObjectSetTemplateSpec{
			Phases: []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Objects: []corev1alpha1.ObjectSetObject{{
				Object: runtime.RawExtension{Raw: []byte(object)}, CollisionProtection: corev1alpha1.CollisionProtectionPrevent,
			}}}},
			AvailabilityProbes: []corev1alpha1.ObjectSetProbe{{
				Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ConfigMap"}},
				Probes:   []corev1alpha1.Probe{{Condition: &corev1alpha1.ProbeConditionSpec{Type: "Ready", Status: "True"}}},
			}},
			SuccessDelaySeconds: 5,
		}
		digest, err := revisions.SpecDigest(spec)
		require.NoError(t, err)
		return revisions.TemplateHash(digest, map[string]string{"app": "shop"})
	}

	const want = "lqfnvdhwht"
	for reason, object := range map[string]string{
		"as stored":             `{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"x"}}`,
		"another order, spaces": `{"kind": "ConfigMap", "metadata": {"name": "x"}, "apiVersion": "v1", "data": {"a": "b"}}`,
	} {
		require.Equal(t, want, hash(object), reason)
	}

	if got := hash(`{"apiVersion":"v1","data":{"a":"c"},"kind":"ConfigMap","metadata":{"name":"x"}}`); got == want {
		t.Error("another object has the same hash")
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Suite{Operations: map[string]conformance.Operation{"revision-manage": conformance.Of(managed)}}.Run(t)
}

// managed repeats Decide until it has nothing left to do. Every revision that it makes succeeds.
func managed(_ *testing.T, in struct {
	ActivationPolicy, Current string
	HistoryLimit              int
	Existing                  []struct {
		Name, State string
		Number      int64
	}
}, want *conformance.Expectation,
) {
	s := revisions.State{HistoryLimit: in.HistoryLimit, Torn: true, Manual: in.ActivationPolicy == "Manual"}
	for _, e := range in.Existing {
		r := done(e.Number)
		if e.State == "Active" {
			r = old(e.Number)
		}
		r.Name, r.Current = e.Name, e.Name == in.Current
		s.Revisions = append(s.Revisions, r)
	}

	number, deleted, states := int64(0), []string{}, map[string]string{}
	for range 3 {
		d := revisions.Decide(s)
		if d.Create > 0 {
			r := old(d.Create)
			if s.Manual {
				r = waiting(d.Create)
			}
			r.Name, r.Current = in.Current, true
			s.Revisions = append(s.Revisions, r)
			continue
		}
		for _, i := range d.Archive {
			s.Revisions[i].Lifecycle, s.Revisions[i].Archived = archived, true
		}
		for _, i := range slices.Backward(d.Collect) {
			deleted = append(deleted, s.Revisions[i].Name)
			s.Revisions = slices.Delete(s.Revisions, i, i+1)
		}
	}

	for _, r := range s.Revisions {
		states[r.Name] = map[bool]string{true: "Active", false: "Inactive"}[r.Live() && !r.Waiting()]
		number = max(number, r.Number)
	}

	want.Is("currentNumber", number)
	want.Is("currentState", states[in.Current])
	want.Set("deleted", deleted)
	want.Has("states", states)
}
