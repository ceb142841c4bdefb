package repositories

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/testing/signed"
)

// The condition Verified is that of the last fetch that has ended; what was fetched before stays offered.
func TestReportVerified(t *testing.T) {
	t.Parallel()
	refusal := (&imagepolicy.Refusal{Reason: imagepolicy.ReasonNoSignature, Message: "the registry has no signature"}).About("ghcr.io/a")
	good := &verification{outcome: &imagepolicy.Outcome{Verified: &imagepolicy.Verified{Authority: "a", Policy: "p"}}, validator: "d verified by k"}
	for name, tc := range map[string]struct {
		view      view
		want      string
		validator string
	}{
		"fetching":        {view{outcome: outcome{step: stepFetch}}, "True/Verified/before", "d"},
		"verified before": {view{outcome: outcome{step: stepRest}}, "True/Verified/before", "d"},
		"not required":    {view{outcome: outcome{step: stepPublish}, verification: &verification{validator: "e"}}, "", "e"},
		"verified":        {view{outcome: outcome{step: stepRest}, verification: good}, "True/Verified/Signed by the authority a of the ImageConfig p.", "d verified by k"},
		"not written":     {view{outcome: outcome{step: stepPublish, writeErr: errors.New("no")}, verification: good}, "True/Verified/before", "d"},
		"refused":         {view{outcome: outcome{step: stepBackOff}, verification: good, attempt: &attempt{Done: true, Err: refusal}}, "False/NoSignature/the image ghcr.io/a is not verified: the registry has no signature.", "d"},
		"another error":   {view{outcome: outcome{step: stepBackOff}, attempt: &attempt{Done: true, Err: errors.New("no route")}}, "True/Verified/before", "d"},
		"warned":          {view{outcome: outcome{step: stepRest}, verification: &verification{outcome: &imagepolicy.Outcome{Refusal: refusal}, validator: "d"}}, "False/NoSignature/the image ghcr.io/a is not verified: the registry has no signature.", "d"},
		"not known":       {view{outcome: outcome{step: stepBackOff}, attempt: &attempt{Done: true, Err: imagepolicy.Unreachable(errors.New("no answer")).About("ghcr.io/a")}}, "Unknown/RegistryUnreachable/the image ghcr.io/a is not verified: its signatures cannot be read: no answer.", "d"},
	} {
		r := newRepository()
		r.Status.Artifact = &corev1alpha1.RepositoryArtifact{Digest: "d", Validator: "d"}
		conditions.Set(&r.Status.Conditions, 1, corev1alpha1.ConditionVerified, true, corev1alpha1.ReasonVerified, "before")
		tc.view.repository, tc.view.last = r, &success{}
		if tc.view.attempt == nil {
			tc.view.attempt = &attempt{}
		}
		status := statusOf(tc.view)
		got := ""
		if c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionVerified); c != nil {
			got = strings.Join([]string{string(c.Status), c.Reason, c.Message}, "/")
		}
		if got != tc.want || status.Artifact.Validator != tc.validator {
			t.Errorf("%s: %q, want %q; validator %s", name, got, tc.want, status.Artifact.Validator)
		}
		ready := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionReady)
		if name == "refused" && (ready.Reason != corev1alpha1.ReasonImageNotVerified || !strings.Contains(ready.Message, "stays offered")) {
			t.Errorf("%s: %+v", name, ready)
		}
	}
}

// A repository waits for the policies, and its fetch is one by them.
func TestGatherPolicy(t *testing.T) {
	t.Parallel()
	store := &imageconfigs.Store{}
	s := &reconciliation{Reconciler: &Reconciler{Options: Options{Policies: store.Get}}}
	gather := func(change ...func(*corev1alpha1.PackageRepository)) *view {
		v := &view{repository: newRepository(change...)}
		s.gatherPolicy(v)
		return v
	}
	inline := func(r *corev1alpha1.PackageRepository) {
		r.Spec.Source = corev1alpha1.RepositorySource{Inline: &corev1alpha1.RepositoryInlineSource{}}
	}
	if v := gather(); !v.waiting || v.inputError != "" {
		t.Errorf("before they were read: %+v", v)
	}
	if v := gather(inline); v.waiting {
		t.Error("what is no image waits for policies of images")
	}
	store.Fail(errors.New("no right"))
	if v := gather(); v.waiting || v.inputError != "Waiting for ImageConfigs: no right" {
		t.Errorf("they cannot be read: %+v", v)
	}
	store.Put(imagepolicy.NewSet([]imagepolicy.Policy{{Name: "packages", Prefixes: []string{"registry.test"}, Verification: &imagepolicy.Verification{
		Purposes: []imagepolicy.Purpose{imagepolicy.Package}, Authorities: []imagepolicy.Authority{signed.NewPair(t).Authority()},
	}}}, false, start))
	if v := gather(); v.waiting || v.inputError != "" || v.input.policy != "" || v.image.Verification != nil {
		t.Errorf("of a policy about packages: %+v", v.input)
	}
	policy := imagepolicy.Policy{Name: "repositories", Prefixes: []string{"registry.test"}, Verification: &imagepolicy.Verification{
		Purposes: []imagepolicy.Purpose{imagepolicy.Repository}, Authorities: []imagepolicy.Authority{signed.NewPair(t).Authority()},
	}}
	store.Put(imagepolicy.NewSet([]imagepolicy.Policy{policy}, false, start))
	first := gather()
	if first.image.Verification == nil || first.input.keys == "" || !strings.Contains(first.input.policy, first.input.keys) {
		t.Errorf("%+v", first.input)
	}
	policy.Verification.Authorities[0] = signed.NewPair(t).Authority()
	store.Put(imagepolicy.NewSet([]imagepolicy.Policy{policy}, false, start))
	if second := gather(); second.input == first.input || second.input.keys == first.input.keys {
		t.Error("another key is no other input")
	}
}
