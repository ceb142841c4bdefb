package repositories

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

// The condition Verified describes the last fetch that has ended; earlier content stays offered.
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

// A repository waits for the policies, and its fetch depends on them.
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
		t.Error("a source that is not an image waits for policies of images")
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
		t.Error("another key is not another input")
	}
}

// If the condition Verified is not True, the image is verified again, even if the same keys
// verified it before.
func TestKnownOf(t *testing.T) {
	t.Parallel()
	is := input{source: "s", keys: "k"}
	for name, tc := range map[string]struct {
		verified bool
		input    input
		last     *success
		want     string
	}{
		"nothing":        {true, is, nil, ""},
		"incomplete":     {true, is, &success{input: is, validator: "d verified by k", incomplete: true}, ""},
		"another source": {true, is, &success{input: input{source: "x"}, validator: "d verified by k"}, ""},
		"verified":       {true, is, &success{input: is, validator: "d verified by k"}, "d verified by k"},
		"refused since":  {false, is, &success{input: is, validator: "d verified by k"}, "d"},
		"no signature":   {false, input{source: "s"}, &success{input: input{source: "s"}, validator: "d"}, "d"},
	} {
		r := newRepository()
		conditions.Set(&r.Status.Conditions, 1, corev1alpha1.ConditionVerified, tc.verified, corev1alpha1.ReasonVerified, "before")
		require.Equal(t, tc.want, knownOf(tc.last, &view{repository: r, input: tc.input}), name)
	}
}

// Published content stays offered if a new image is refused. It is withdrawn if it is not verified
// as the policies require now, also after a restart and while the repository is paused.
func TestDistrustedIsWithdrawn(t *testing.T) {
	t.Parallel()
	w, store := newWorld(), &imageconfigs.Store{}
	digest, signatures := "a", map[string]bool{} // by digest and keys
	fetch := func(_ context.Context, j job) (*result, error) {
		validator, keys := digest, j.image.VerificationKey
		var outcome *imagepolicy.Outcome
		if keys != "" {
			verified, err := &imagepolicy.Verified{Authority: "a"}, error(nil)
			if !signatures[digest+keys] {
				err = &imagepolicy.Refusal{Reason: imagepolicy.ReasonNoSignature, Message: "no signature"}
			} else {
				validator += " verified by " + keys
			}
			if validator != j.known || err != nil {
				if outcome, err = j.image.Outcome("image", verified, err); err != nil {
					return nil, err
				}
			}
		}
		if known, _, _ := strings.Cut(j.known, " "); known == digest {
			return &result{notModified: true, validator: validator, verification: outcome}, nil
		}
		content, err := pack(&repository.Content{Packages: []repository.Package{{
			Name: "cart", Versions: []corev1alpha1.AvailableVersion{{Version: "1.0.0", Image: digest}},
		}}})
		return &result{digest: digest, revision: digest, validator: validator, content: content, verification: outcome}, err
	}
	restart := func() {
		w.restart(t.Context())
		w.Policies, w.fetch = store.Get, fetch
	}
	var keys string
	demand := func(mode imagepolicy.Mode, key signed.Pair) {
		set := imagepolicy.NewSet([]imagepolicy.Policy{{Name: "p", Prefixes: []string{"registry.test"}, Verification: &imagepolicy.Verification{
			Mode: mode, Purposes: []imagepolicy.Purpose{imagepolicy.Repository}, Authorities: []imagepolicy.Authority{key.Authority()},
		}}}, false, start)
		decision := set.Decide("registry.test/shop:latest", imagepolicy.Repository)
		keys = decision.VerificationKey
		store.Put(set)
	}
	r := newRepository()
	check := func(step, offered, verified, message string) {
		t.Helper()
		w.now = w.now.Add(time.Hour)
		w.converge(t)
		require.Equal(t, offered, strings.Join(slices.Collect(maps.Values(w.offered())), " "), fmt.Sprintf("%s: offered", step))
		require.NoError(t, w.server.Get(t.Context(), client.ObjectKeyFromObject(r), r))
		got := ""
		if c := meta.FindStatusCondition(r.Status.Conditions, corev1alpha1.ConditionVerified); c != nil {
			got = string(c.Status)
		}
		if ready := meta.FindStatusCondition(r.Status.Conditions, corev1alpha1.ConditionReady); got != verified || !strings.Contains(ready.Message, message) ||
			(r.Status.Artifact == nil) != (offered == "") || (r.Status.Versions == 0) != (offered == "") {
			t.Errorf("%s: %s", step, fmt.Sprintf("Verified %s, want %s; %s; %+v", got, verified, ready.Message, r.Status))
		}
	}
	own, other := signed.NewPair(t), signed.NewPair(t)
	store.Put(imagepolicy.NewSet(nil, false, start))
	restart()
	require.NoError(t, w.server.Create(t.Context(), r))
	check("without policies", "stable a", "", "Offers 1 package")
	demand(imagepolicy.Enforce, own)
	check("a signature is required", "", "False", "no longer offered")
	signatures["a"+keys] = true
	check("signed", "stable a", "True", "Offers 1 package")
	digest = "b"
	check("another image", "stable a", "False", "stays offered")
	restart()
	check("after a restart", "stable a", "False", "stays offered")
	digest = "a"
	check("the former image again", "stable a", "True", "Offers 1 package")
	restart()
	digest = "b"
	check("another image after a restart", "stable a", "False", "stays offered")
	digest = "a"
	check("the former image after a restart", "stable a", "True", "Offers 1 package")
	demand(imagepolicy.Enforce, other)
	restart()
	check("another key", "", "False", "no longer offered")
	restart()
	check("another key, after a restart", "", "False", "not verified")
	demand(imagepolicy.Warn, other)
	check("warned of", "stable a", "False", "Offers 1 package")
	r.Spec.Paused = true
	require.NoError(t, w.server.Update(t.Context(), r))
	demand(imagepolicy.Enforce, other)
	check("paused", "", "", "no longer offered")
}
