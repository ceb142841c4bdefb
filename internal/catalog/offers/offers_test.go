package offers

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/test/require"
)

func spec(name string, part int32, repository string, versions ...string) corev1alpha1.AvailablePackageSpec {
	s := corev1alpha1.AvailablePackageSpec{PackageName: name, Part: part}
	for _, v := range versions {
		s.Versions = append(s.Versions, corev1alpha1.AvailableVersion{Version: v, Repository: repository, Image: "registry.example/" + name + ":" + v})
	}
	return s
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	type specs = []corev1alpha1.AvailablePackageSpec
	cases := []struct {
		reason         string
		local, cluster specs
		hidden         string
		want           []string
	}{
		{reason: "no version is offered", want: nil},
		{
			reason: "the parts of a package are one list", want: []string{"PackageRepository/r 1.0.0", "PackageRepository/r 2.0.0"},
			local: specs{spec("shop", 1, "r", "2.0.0"), spec("shop", 0, "r", "1.0.0"), spec("other", 0, "r", "3.0.0")},
		},
		{
			reason: "an own repository wins", want: []string{"PackageRepository/own 1.0.0", "ClusterPackageRepository/all 2.0.0"},
			local: specs{spec("shop", 0, "own", "1.0.0")}, cluster: specs{spec("shop", 0, "all", "1.0.0", "2.0.0")},
		},
		{
			reason: "a cluster repository that is not visible offers nothing", hidden: "secret", want: []string{"ClusterPackageRepository/all 2.0.0"},
			cluster: specs{spec("shop", 0, "secret", "1.0.0"), spec("shop", 1, "all", "2.0.0")},
		},
		{
			reason: "the next repository that offers a version has it where the first is not visible", hidden: "secret",
			want:    []string{"ClusterPackageRepository/all 1.0.0"},
			cluster: specs{spec("shop", 0, "secret", "1.0.0"), spec("shop", 1, "all", "1.0.0"), spec("shop", 2, "third", "1.0.0")},
		},
		{
			reason: "a repository of the namespace is visible under any name", hidden: "secret", want: []string{"PackageRepository/secret 1.0.0"},
			local: specs{spec("shop", 0, "secret", "1.0.0")},
		},
	}

	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, o := range Candidates("shop", c.local, c.cluster, func(r string) bool { return r != c.hidden }) {
				got = append(got, o.Source()+" "+o.Version.Version)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	gold := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	for reason, c := range map[string]struct {
		selector  *metav1.LabelSelector
		namespace labels.Set
		want      bool
	}{
		"no selector":         {nil, nil, true},
		"it selects":          {gold, labels.Set{"tier": "gold"}, true},
		"it does not":         {gold, nil, false},
		"another value":       {gold, labels.Set{"tier": ""}, false},
		"an empty selector":   {&metav1.LabelSelector{}, nil, true},
		"an invalid selector": {&metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}, labels.Set{"a b": "c"}, false},
	} {
		require.Equal(t, c.want, Visible(&corev1alpha1.PackageRepositorySpec{NamespaceSelector: c.selector}, c.namespace), reason)
	}
}

func TestPending(t *testing.T) {
	t.Parallel()
	stalled := func(generation int64) func(*corev1alpha1.PackageRepository) {
		return func(r *corev1alpha1.PackageRepository) {
			conditions.Set(&r.Status.Conditions, generation, corev1alpha1.ConditionStalled, true, corev1alpha1.ReasonFetchFailed, "")
		}
	}

	for reason, c := range map[string]struct {
		change func(*corev1alpha1.PackageRepository)
		want   bool
	}{
		"new":               {func(*corev1alpha1.PackageRepository) {}, true},
		"fetched":           {func(r *corev1alpha1.PackageRepository) { r.Status.Artifact = &corev1alpha1.RepositoryArtifact{} }, false},
		"paused":            {func(r *corev1alpha1.PackageRepository) { r.Spec.Paused = true }, false},
		"cannot be fetched": {stalled(2), false},
		"changed since":     {stalled(1), true},
		"deleted":           {func(r *corev1alpha1.PackageRepository) { r.DeletionTimestamp = &metav1.Time{} }, false},
	} {
		r := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		c.change(r)
		require.Equal(t, c.want, Pending(r), reason)
	}
}

// A version that cannot be installed has a reason.
func TestCandidate(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]corev1alpha1.AvailableVersion{
		"":                                  {Version: "1.0.0", Image: "registry.example/shop"},
		"neither an image nor manifests":    {Version: "1.0.0"},
		"template[0].ytt, which packages":   {Version: "1.0.0", Image: "registry.example/shop", NotCarriedOver: []string{"template[0].ytt"}},
		"has 1025 bytes; the limit is 1024": {Version: "1.0.0", Image: strings.Repeat("a", 1025)},
	} {
		got := Offered{Version: v}.Candidate().NotInstallable
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}

	if o := (Offered{Version: corev1alpha1.AvailableVersion{Version: "1.0.0", Files: map[string]string{"a.yaml": ""}}}); !o.Inline() || o.Candidate().NotInstallable != "" {
		t.Error("manifests of the repository itself")
	}
}

// The digest of manifests depends only on their paths and texts.
func TestFilesDigest(t *testing.T) {
	t.Parallel()
	a := FilesDigest(map[string]string{"a": "1", "b": "2"})
	if a != FilesDigest(map[string]string{"b": "2", "a": "1"}) || a == FilesDigest(map[string]string{"a": "2", "b": "1"}) || a == "" {
		t.Error(a)
	}
}
