package repositories

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/require"
)

// fetched has the status of a repository whose present spec was fetched.
func fetched(r *corev1alpha1.PackageRepository) {
	r.Status.ObservedGeneration, r.Status.Packages, r.Status.Versions = r.Generation, 1, 2
	r.Status.Artifact = &corev1alpha1.RepositoryArtifact{Digest: "sha256:d", Revision: "main@1"}
	conditions.Kstatus(&r.Status.Conditions, r.Generation, conditions.State{
		Ready: true, Reason: corev1alpha1.ReasonFetched, Message: "Offers 1 package in 2 versions of revision main@1.",
	})
}

// edited has another generation than the status.
func edited(r *corev1alpha1.PackageRepository) { r.Generation++ }

type changes []func(*corev1alpha1.PackageRepository)

func TestStatus(t *testing.T) {
	t.Parallel()
	is := input{source: "s"}
	last, failed := &success{input: is}, func(err error) *attempt { return &attempt{In: is, Done: true, Err: err} }
	content := &result{digest: "sha256:e", revision: "main@2", validator: "v", content: &packed{packages: map[string]packedPackage{"a": {}, "b": {}}, versions: 3}}
	const stays = "\nThe content of revision main@1, fetched before, stays offered."
	const rests = "Ready=True/Fetched: Offers 1 package in 2 versions of revision main@1."
	for name, tc := range map[string]struct {
		reason string
		change changes
		view   view
		want   []string
	}{
		"new": {"it is being fetched",
			nil, view{outcome: outcome{step: stepFetch}}, []string{
				"Ready=False/Progressing: Fetching registry.test/shop:latest.", "Reconciling=True/Progressing: Fetching registry.test/shop:latest.",
			}},
		"fetched": {"it is published",
			nil, view{attempt: &attempt{Out: download{result: content}}, outcome: outcome{step: stepPublish, published: content}},
			[]string{"Ready=True/Fetched: Offers 2 packages in 3 versions of revision main@2."}},
		"at rest":          {"as it was", changes{fetched}, view{last: last, outcome: outcome{step: stepRest}}, []string{rests}},
		"fetched again":    {"as before, until that has ended", changes{fetched}, view{last: last, outcome: outcome{step: stepWait}}, []string{rests}},
		"inputs not known": {"as before", changes{fetched}, view{outcome: outcome{step: stepGather}}, []string{rests}},
		"another source": {"content fetched before stays offered",
			changes{fetched, edited}, view{last: &success{input: input{source: "x"}}, outcome: outcome{step: stepFetch}},
			[]string{"Ready=False/Progressing: Fetching registry.test/shop:latest." + stays, "Reconciling=True/Progressing: Fetching registry.test/shop:latest." + stays}},
		"failed": {"it is repeated",
			changes{fetched}, view{last: last, attempt: failed(&fetch.Error{Details: "no answer"}), outcome: outcome{step: stepBackOff}},
			[]string{"Ready=False/FetchFailed: no answer" + stays, "Reconciling=True/FetchFailed: no answer" + stays}},
		"failed for good": {"it needs help",
			nil, view{attempt: failed(&fetch.Error{Details: "no such host", Permanent: true}), outcome: outcome{step: stepBackOff}},
			[]string{"Ready=False/FetchFailed: no such host", "Stalled=True/FetchFailed: no such host"}},
		"invalid": {"it needs help",
			changes{fetched}, view{last: last, attempt: failed(&contentError{err: errors.New("no document")}), outcome: outcome{step: stepBackOff}},
			[]string{"Ready=False/ContentInvalid: no document" + stays, "Stalled=True/ContentInvalid: no document" + stays}},
		"paused": {"fetched content stays offered",
			changes{fetched, paused}, view{input: is, last: last, outcome: outcome{step: stepPaused}},
			[]string{rests, "Paused=True/Paused: Nothing is fetched while the repository is paused. The fetched content stays offered."}},
		"in conflict": {"it is ready all the same",
			changes{fetched}, view{last: last, outcome: outcome{step: stepRest, conflicts: []string{"shop 1.0.0: differs"}}},
			[]string{rests, "Conflicting=True/VersionConflict: shop 1.0.0: differs"}},
		"not written": {"the API server refuses",
			changes{fetched},
			view{attempt: &attempt{Out: download{result: content}}, outcome: outcome{step: stepPublish, writeErr: errors.New("forbidden")}},
			[]string{"Ready=False/ApplyError: forbidden", "Reconciling=True/ApplyError: forbidden"}},
		"raced": {"it is repeated in a moment",
			changes{fetched},
			view{attempt: &attempt{Out: download{result: content}}, outcome: outcome{step: stepPublish, writeErr: apierrors.NewConflict(schema.GroupResource{}, "shop", nil)}},
			[]string{rests}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := tc.view
			v.repository, v.now = newRepository(tc.change...), start
			var got []string
			for _, c := range statusOf(v).Conditions {
				got = append(got, fmt.Sprintf("%s=%s/%s: %s", c.Type, c.Status, c.Reason, c.Message))
			}
			slices.Sort(got)
			require.Equal(t, slices.Sorted(slices.Values(tc.want)), got, tc.reason)
		})
	}
}

// The status has a bounded number of bounded texts, and counts the others.
func TestStatusIsBounded(t *testing.T) {
	t.Parallel()
	r := newRepository()
	problems := make([]string, 100)
	for i := range problems {
		problems[i] = strings.Repeat("x\x00", 1000)
	}
	many := &result{revision: strings.Repeat("r", 5000), validator: strings.Repeat("v", 5000), content: &packed{problems: problems}}
	status := statusOf(view{repository: r, attempt: &attempt{Out: download{result: many}}, outcome: outcome{step: stepPublish, published: many, conflicts: problems}})
	if len(status.Problems) != repositoryStatusNumber || status.Problems[9] != "… and 91 more problems" {
		t.Errorf("%d problems, the last %q", len(status.Problems), status.Problems[len(status.Problems)-1])
	}
	if len(status.Problems[0]) > repositoryStatusBytes || len(status.Artifact.Revision) > repositoryStatusBytes || status.Artifact.Validator != "" {
		t.Errorf("texts of %d and %d bytes, a validator of %d", len(status.Problems[0]), len(status.Artifact.Revision), len(status.Artifact.Validator))
	}
}

// Events are about transitions: another content, another failure, a conflict.
func TestTransitionEvents(t *testing.T) {
	t.Parallel()
	status := func(digest, ready, conflicting string) *corev1alpha1.PackageRepositoryStatus {
		s := &corev1alpha1.PackageRepositoryStatus{}
		if digest != "" {
			s.Artifact = &corev1alpha1.RepositoryArtifact{Digest: digest}
		}
		if ready != "" {
			conditions.Set(&s.Conditions, 1, corev1alpha1.ConditionReady, ready == corev1alpha1.ReasonFetched, ready, "")
		}
		if conflicting != "" {
			conditions.Set(&s.Conditions, 1, corev1alpha1.ConditionConflicting, true, corev1alpha1.ReasonVersionConflict, conflicting)
		}
		return s
	}
	const fetchedOnce, failed = corev1alpha1.ReasonFetched, corev1alpha1.ReasonFetchFailed
	for name, tc := range map[string]struct {
		before, after *corev1alpha1.PackageRepositoryStatus
		want          string
	}{
		"first content":     {before: status("", "", ""), after: status("a", fetchedOnce, ""), want: "Fetched"},
		"another content":   {before: status("a", fetchedOnce, ""), after: status("b", fetchedOnce, ""), want: "Fetched"},
		"begins":            {before: status("", "", ""), after: status("", corev1alpha1.ReasonProgressing, "")},
		"fails":             {before: status("a", fetchedOnce, ""), after: status("a", failed, ""), want: "FetchFailed"},
		"fails by memory":   {before: status("a", fetchedOnce, ""), after: status("a", corev1alpha1.ReasonMemoryExceeded, ""), want: "MemoryExceeded"},
		"is paused":         {before: status("a", failed, ""), after: status("a", corev1alpha1.ReasonPaused, "")},
		"fails again":       {before: status("a", failed, ""), after: status("a", failed, "")},
		"fails otherwise":   {before: status("a", failed, ""), after: status("a", corev1alpha1.ReasonContentInvalid, ""), want: "ContentInvalid"},
		"works again":       {before: status("a", failed, ""), after: status("a", fetchedOnce, "")},
		"conflicts":         {before: status("a", fetchedOnce, ""), after: status("a", fetchedOnce, "x"), want: "VersionConflict"},
		"conflicts more":    {before: status("a", fetchedOnce, "x"), after: status("a", fetchedOnce, "y")},
		"conflicts no more": {before: status("a", fetchedOnce, "x"), after: status("a", fetchedOnce, "")},
	} {
		var got []string
		for _, e := range transitionEvents(tc.before, tc.after) {
			got = append(got, e.Reason)
		}
		require.Equal(t, tc.want, strings.Join(got, " "), fmt.Sprintf("%s: events %v, want", name, got))
	}
}

// Work that starts is often over in a moment, and is not reported before.
func TestBeginning(t *testing.T) {
	t.Parallel()
	is := input{source: "s"}
	for name, tc := range map[string]struct {
		view view
		want time.Duration
	}{
		"begins":  {view: view{outcome: outcome{step: stepFetch}}, want: time.Second},
		"goes on": {view: view{input: is, attempt: &attempt{In: is, Started: start.Add(-400 * time.Millisecond)}, outcome: outcome{step: stepWait}}, want: 600 * time.Millisecond},
		"is due":  {view: view{input: is, attempt: &attempt{Started: start.Add(-time.Hour)}, outcome: outcome{step: stepWait}}, want: time.Second},
		"failed":  {view: view{outcome: outcome{step: stepBackOff}}},
	} {
		tc.view.now = start
		require.Equal(t, tc.want, startDelay(tc.view), name)
	}
}

func TestHostOf(t *testing.T) {
	t.Parallel()
	image := func(ref string) corev1alpha1.RepositorySource {
		return corev1alpha1.RepositorySource{Image: &corev1alpha1.RepositoryImageSource{Ref: ref}}
	}
	git := func(url string) corev1alpha1.RepositorySource {
		return corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{URL: url}}
	}
	for want, sources := range map[string][]corev1alpha1.RepositorySource{
		"registry.test:5000": {image("registry.test:5000/a/b:v1")},
		"git.test":           {git("https://git.test/a"), git("git@git.test:a/b"), git("ssh://git@git.test/a"), git("https://GIT.test/a?b")},
		"":                   {{Inline: &corev1alpha1.RepositoryInlineSource{}}},
	} {
		for _, source := range sources {
			require.Equal(t, want, hostOf(&source, imagepolicy.Decision{}), "host")
		}
	}
}

// The same errors are kept at each try, in the order of the packages, regardless of races.
func TestFirstErrors(t *testing.T) {
	t.Parallel()
	conflict := apierrors.NewConflict(schema.GroupResource{}, "a", nil)
	errs := []error{nil, conflict}
	var want []string
	for i := range repositoryStatusNumber + 3 {
		text := fmt.Sprintf("write package %d: %s", i, strings.Repeat("no", 20-i))
		errs = append(errs, errors.New(text), nil)
		want = append(want, text)
	}
	if got := firstErrors(errs); got == nil || got.Error() != strings.Join(want[:repositoryStatusNumber], "\n") || queueing.Raced(got) {
		t.Errorf("got %v", got)
	}
	if got := firstErrors([]error{nil, conflict}); !queueing.Raced(got) {
		t.Errorf("got %v", got)
	}
	if got := firstErrors([]error{nil}); got != nil {
		t.Errorf("got %v", got)
	}
}

func newAvailable(schema string) *corev1alpha1.AvailablePackage {
	a := &corev1alpha1.AvailablePackage{}
	a.Spec = corev1alpha1.AvailablePackageSpec{
		PackageName: "shop", Display: &corev1alpha1.PackageDisplay{Name: "Shop"},
		Versions: []corev1alpha1.AvailableVersion{{
			Version: "1.0.0", Image: "registry.test/shop", Repository: "stable", Constraints: []corev1alpha1.AvailableConstraint{{Platform: "Kubernetes", Range: ">=1.29"}},
			Release: &corev1alpha1.PackageRelease{Notes: "News"}, ConfigSchema: &runtime.RawExtension{Raw: []byte(schema)},
		}},
	}
	return a
}

// The caches keep the fields that decide the choice of a version, and a digest of the whole spec
// that does not depend on its formatting.
func TestCompact(t *testing.T) {
	t.Parallel()
	needs := newAvailable(`{}`)
	needs.Spec.Versions[0].Dependencies = []corev1alpha1.Dependency{{Name: "db", Package: &corev1alpha1.DependencyPackage{Name: "db.example.com"}}}
	needs.Spec.Versions[0].Provides = []corev1alpha1.ProvidedAPI{{APIVersion: "example.com/v1", Kind: "Shop"}}
	Compact(needs)
	if v := needs.Spec.Versions[0]; len(v.Dependencies) != 1 || len(v.Provides) != 1 {
		t.Errorf("fields that dependency resolution needs were dropped: %+v", v)
	}
	a, same, other := newAvailable(`{"type":"object","default":1.0}`), newAvailable(`{ "default": 1, "type": "object" }`), newAvailable(`{"type":"array"}`)
	for _, o := range []*corev1alpha1.AvailablePackage{a, same, other} {
		Compact(o)
		Compact(o) // objects can pass a cache twice
	}
	v := a.Spec.Versions[0]
	if v.Release != nil || v.ConfigSchema != nil || a.Spec.Display != nil || v.Image == "" || len(v.Constraints) != 1 {
		t.Errorf("kept %+v", a.Spec)
	}
	digest := func(o *corev1alpha1.AvailablePackage) string { return o.Annotations[digestAnnotation] }
	if digest(a) == "" || digest(a) != digest(same) || digest(a) == digest(other) {
		t.Errorf("digests %q, %q and %q", digest(a), digest(same), digest(other))
	}
	require.Equal(t, digestOf(&newAvailable(`{"type":"object","default":1}`).Spec), digest(a), "digest")
}

// A content is the same after it was compressed, and compared package by package.
func TestPacked(t *testing.T) {
	t.Parallel()
	content := func(notes string, names ...string) *repository.Content {
		c := &repository.Content{Problems: []string{"one"}}
		for _, name := range names {
			spec := newAvailable(`{"type":"object"}`).Spec
			spec.Versions[0].Release.Notes = notes
			c.Packages = append(c.Packages, repository.Package{Name: name, Display: spec.Display, Versions: spec.Versions})
		}
		return c
	}
	before := mustPack(t, content("old", "a", "b"))
	after := mustPack(t, &repository.Content{Packages: append(content("old", "a").Packages, content("new", "c").Packages...)})
	if before.versions != 2 || len(before.packages) != 2 || len(before.problems) != 1 {
		t.Errorf("packed %+v", before)
	}
	got, err := before.unpack("b")
	require.NoError(t, err)
	require.Equal(t, content("old", "b").Packages[0], *got)
	if none, err := before.unpack("c"); none != nil || err != nil {
		t.Errorf("got %v, %v", none, err)
	}
	names := changed(before, after)
	require.Equal(t, []string{"c", "b"}, names, "changed")
}

func mustPack(t testing.TB, content *repository.Content) *packed {
	t.Helper()
	p, err := pack(content)
	require.NoError(t, err)
	return p
}
