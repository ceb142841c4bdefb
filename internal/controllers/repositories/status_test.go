package repositories

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/kube/conditions"
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

func TestStatus(t *testing.T) {
	t.Parallel()
	is := input{source: "s"}
	last, failed := &success{input: is}, func(err error) *attempt { return &attempt{In: is, Done: true, Err: err} }
	content := &result{digest: "sha256:e", revision: "main@2", validator: "v", content: &packed{packages: map[string]packedPackage{"a": {}, "b": {}}, versions: 3}}
	const stays = "\nThe content of revision main@1, fetched before, stays offered."
	const rests = "Ready=True/Fetched: Offers 1 package in 2 versions of revision main@1."
	for name, tc := range map[string]struct {
		reason string
		change []func(*corev1alpha1.PackageRepository)
		view   view
		want   []string
	}{
		"new": {reason: "it is being fetched", view: view{outcome: outcome{step: stepFetch}}, want: []string{
			"Ready=False/Progressing: Fetching registry.test/shop:latest.", "Reconciling=True/Progressing: Fetching registry.test/shop:latest.",
		}},
		"fetched": {
			reason: "it is published", view: view{attempt: &attempt{Out: download{result: content}}, outcome: outcome{step: stepPublish, published: content}},
			want: []string{"Ready=True/Fetched: Offers 2 packages in 3 versions of revision main@2."},
		},
		"at rest":          {reason: "as it was", change: []func(*corev1alpha1.PackageRepository){fetched}, view: view{last: last, outcome: outcome{step: stepRest}}, want: []string{rests}},
		"fetched again":    {reason: "as before, until that has ended", change: []func(*corev1alpha1.PackageRepository){fetched}, view: view{last: last, outcome: outcome{step: stepWait}}, want: []string{rests}},
		"inputs not known": {reason: "as before", change: []func(*corev1alpha1.PackageRepository){fetched}, view: view{outcome: outcome{step: stepGather}}, want: []string{rests}},
		"another source": {
			reason: "content fetched before stays offered", change: []func(*corev1alpha1.PackageRepository){fetched, edited},
			view: view{last: &success{input: input{source: "x"}}, outcome: outcome{step: stepFetch}},
			want: []string{"Ready=False/Progressing: Fetching registry.test/shop:latest." + stays, "Reconciling=True/Progressing: Fetching registry.test/shop:latest." + stays},
		},
		"failed": {
			reason: "it is repeated", change: []func(*corev1alpha1.PackageRepository){fetched},
			view: view{last: last, attempt: failed(&fetch.Error{Details: "no answer"}), outcome: outcome{step: stepBackOff}},
			want: []string{"Ready=False/FetchFailed: no answer" + stays, "Reconciling=True/FetchFailed: no answer" + stays},
		},
		"failed for good": {
			reason: "it needs help", view: view{attempt: failed(&fetch.Error{Details: "no such host", Permanent: true}), outcome: outcome{step: stepBackOff}},
			want: []string{"Ready=False/FetchFailed: no such host", "Stalled=True/FetchFailed: no such host"},
		},
		"invalid": {
			reason: "it needs help", change: []func(*corev1alpha1.PackageRepository){fetched},
			view: view{last: last, attempt: failed(&contentError{err: errors.New("no document")}), outcome: outcome{step: stepBackOff}},
			want: []string{"Ready=False/ContentInvalid: no document" + stays, "Stalled=True/ContentInvalid: no document" + stays},
		},
		"paused": {
			reason: "fetched content stays offered", change: []func(*corev1alpha1.PackageRepository){fetched, paused},
			view: view{input: is, last: last, outcome: outcome{step: stepPaused}},
			want: []string{rests, "Paused=True/Paused: Nothing is fetched while the repository is paused. The fetched content stays offered."},
		},
		"in conflict": {
			reason: "it is ready all the same", change: []func(*corev1alpha1.PackageRepository){fetched},
			view: view{last: last, outcome: outcome{step: stepRest, conflicts: []string{"shop 1.0.0: differs"}}},
			want: []string{rests, "Conflicting=True/VersionConflict: shop 1.0.0: differs"},
		},
		"not written": {
			reason: "the API server refuses", change: []func(*corev1alpha1.PackageRepository){fetched},
			view: view{attempt: &attempt{Out: download{result: content}}, outcome: outcome{step: stepPublish, writeErr: errors.New("forbidden")}},
			want: []string{"Ready=False/ApplyError: forbidden", "Reconciling=True/ApplyError: forbidden"},
		},
		"raced": {
			reason: "it is repeated in a moment", change: []func(*corev1alpha1.PackageRepository){fetched},
			view: view{attempt: &attempt{Out: download{result: content}}, outcome: outcome{step: stepPublish, writeErr: apierrors.NewConflict(schema.GroupResource{}, "shop", nil)}},
			want: []string{rests},
		},
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
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: events %v, want %q", name, got, tc.want)
		}
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
		if got := startDelay(tc.view); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
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
			if got := hostOf(&source, imagepolicy.Decision{}); got != want {
				t.Errorf("host %q of %+v, want %q", got, source, want)
			}
		}
	}
}
