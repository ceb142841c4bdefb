package catalogue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/require"
)

func TestAvailable(t *testing.T) {
	t.Parallel()
	old := clustertest.OfferedAs("shop", "1.0.0", "1.2.0", "2.0.0", "3.0.0-rc.1").(*corev1alpha1.AvailablePackage)
	old.Spec.Versions[2].Retracted = "it loses orders"
	old.Spec.Versions[1].NotCarriedOver = []string{"template[0].ytt"}
	needs := &old.Spec.Versions[0]
	needs.UniqueInScope, needs.Scopes = corev1alpha1.UniqueScopeCluster, []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced}
	needs.Dependencies = []corev1alpha1.Dependency{
		{Name: "db", Package: &corev1alpha1.DependencyPackage{Name: "db.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: ">=1, <3"}}},
		{Name: "certs", Optional: true, API: &corev1alpha1.DependencyAPI{APIVersion: "cert-manager.io/v1", Kind: "Certificate"}},
	}
	c := clustertest.FakeCluster(t, old, clustertest.OfferedAs("", "0.9.0"))
	for _, test := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"NAME              DISPLAY NAME  NEWEST  REPOSITORY\nshop.example.com  Shop          1.0.0   PackageRepository/stable\n"}},
		{[]string{"--cluster"}, []string{"0.9.0   ClusterPackageRepository/stable\n"}},
		{[]string{"-A"}, []string{"(cluster)  shop.example.com  Shop          0.9.0", "shop       shop.example.com  Shop          1.0.0"}},
		{[]string{"shop.example.com"}, []string{"Is           Shop: Sells.", "  Keywords     shop, cart\n  Owners       Eve <eve@example.com>\n  Links        Website: https://shop.example.com\n               Source: https://git.example.com/shop\n", "template[0].ytt", "retracted", "it loses orders", "  3.0.0-rc.1  2026-01-31  PackageRepository/stable         is a prerelease: add --prereleases to include it\n", "  0.9.0       2026-01-31  ClusterPackageRepository/stable"}},
		{[]string{"shop.example.com/1.2.0"}, []string{"Licenses     MIT", "Provides     example.com/v1 Shop", "Release notes\n  Notes of 1.2.0.\n", "Not here", "template[0].ytt"}},
		{[]string{"shop.example.com/1.0.0"}, []string{
			"Installs as  Package\n", "At most      one in a cluster\n",
			"Depends on   db: package db.example.com >=1, <3\n               certs: API cert-manager.io/v1 Certificate (optional)\n  Provides     example.com/v1 Shop\n",
		}},
		{[]string{"shop.example.com/1.0.0", "-o", "json", "|jq", ".versions[0].dependencies[0].package.name"}, []string{"db.example.com\n"}},
		{[]string{"shop.example.com", "--values-schema"}, []string{"shop.example.com 1.0.0", "title  string   required", "size   integer  3", "token  string"}},
		{[]string{"-A", "-o", "json"}, []string{`"name": "shop.example.com"`}},
		{[]string{"shop.example.com", "-o", "json"}, []string{`"retracted": "it loses orders"`}},
		{[]string{"shop.example.com", "--values-schema", "-o", "json"}, []string{`"key": "title"`}},
		{[]string{"shop.example.com", "-o", "json", "|jq", "[.versions[].version] | join(\" \")"}, []string{"3.0.0-rc.1 2.0.0 1.2.0 1.0.0 0.9.0\n"}},
	} {
		got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"available"}, test.args...)...)
		require.Equal(t, 0, got.Code, fmt.Sprintf("%v: %+v", test.args, got))
		for _, want := range test.want {
			require.Contains(t, got.Out, want, test.args)
		}
	}
	golden.JSON(t, "available", clitest.InvokeOn(t, clustertest.DialTo(c), "", "available", "-A", "-o", "json").Out)
	golden.JSON(t, "available-versions", clitest.InvokeOn(t, clustertest.DialTo(c), "", "available", "shop.example.com", "-o", "json").Out)
	for arg, want := range map[string]string{
		"--values":               "NAME is missing: name the package",
		"-A shop.example.com":    "--all-namespaces lists packages: leave out NAME",
		"shop.exampel.com":       `no repository offers shop.exampel.com in namespace shop. Did you mean "shop.example.com"? See: kubectl package available`,
		"shop.example.com/4.0.0": "version 4.0.0 of shop.example.com is not offered; the offered versions are: 3.0.0-rc.1, 2.0.0",
		"a/b/c":                  `"a/b/c" is neither NAME nor NAME/VERSION`,
	} {
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"available"}, strings.Fields(arg)...)...); got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%s: %+v, want %s", arg, got, want)
		}
	}
}

// fetcher plays the controller of repositories.
func fetcher(t *testing.T, c *cluster.Cluster, next func(*corev1alpha1.PackageRepositorySpec) metav1.Condition) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		var list corev1alpha1.PackageRepositoryList
		if c.List(ctx, &list) != nil {
			return
		}
		for i := range list.Items {
			r := &list.Items[i]
			ready := next(&r.Spec)
			ready.ObservedGeneration, ready.LastTransitionTime = r.Generation, metav1.Now()
			r.Status = corev1alpha1.PackageRepositoryStatus{
				Conditions: []metav1.Condition{ready}, Packages: 1, Versions: 2, LastHandledRetry: r.Annotations[corev1alpha1.RetryAnnotation],
			}
			if ready.Status == metav1.ConditionFalse {
				r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: "Stalled", Status: "True", Reason: ready.Reason})
			}
			_ = c.Update(ctx, r)
		}
	}, 10*time.Millisecond)
}

func TestSource(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t)
	fetcher(t, c, func(spec *corev1alpha1.PackageRepositorySpec) metav1.Condition {
		if spec.Source.Image != nil && spec.Source.Image.Ref == "example.com/missing" {
			return metav1.Condition{Type: "Ready", Status: "False", Reason: "FetchFailed", Message: "there is no image example.com/missing"}
		}
		return metav1.Condition{Type: "Ready", Status: "True", Reason: "Fetched"}
	})
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"add", "stable", "example.com/repo:latest", "--secret-ref", "pull"}, 0, "packagerepository shop/stable added\npackagerepository shop/stable is ready: 1 package, 2 versions, after T\n"},
		{[]string{"add", "stable", "example.com/repo:latest", "--secret-ref", "pull"}, 0, "packagerepository shop/stable is already up to date\n"},
		{[]string{"add", "stable", "--url", "example.com/other"}, 1, "exists and differs. Change it with kubectl package repo update packagerepository/stable -n shop and the flags that differ, or choose another name"},
		{[]string{"update", "stable", "--tag-constraint", ">=0"}, 0, "changed\npackagerepository shop/stable is ready"},
		{[]string{"update", "stable", "--prereleases=rc"}, 0, "changed\n"},
		{[]string{"update", "stable", "--tag-constraint", ">=1"}, 0, "changed\n"},
		{[]string{"add", "missing", "example.com/missing"}, 1, "there is no image example.com/missing\nSee: kubectl package repo get packagerepository/missing -n shop"},
		{[]string{"update", "stable", "--paused"}, 0, "changed\n"},
		{[]string{"update", "stable", "--paused"}, 0, "packagerepository shop/stable is already up to date\n"},
		{[]string{"update", "stable"}, 1, "is paused, so it is not fetched. To resume it: kubectl package repo update packagerepository/stable -n shop --paused=false"},
		{[]string{"update", "stable", "--paused=false", "--url", "example.com/repo:v2"}, 0, "is ready"},
		{[]string{"list", "-o", "json"}, 0, `"kind": "PackageRepository"`},
		{[]string{"get", "stable", "-o", "json"}, 0, `"kind": "PackageRepository"`},
		{[]string{"update", "stable"}, 0, "is fetched again\npackagerepository shop/stable is ready"},
		{[]string{"add", "git", "--git", "https://example.com/a.git", "--ref", "main"}, 0, "is ready"},
		{[]string{"add", "http", "--http", "https://example.com/a.tgz?token=hunter2"}, 0, "is ready"},
		{[]string{"list"}, 0, "http https://example.com/a.tgz "},
		{[]string{"list"}, 0, "git https://example.com/a.git main"},
		{[]string{"get", "http"}, 0, "Source     http https://example.com/a.tgz\n"},
		{[]string{"get", "http", "-o", "json"}, 0, `"url": "https://example.com/a.tgz?…"`},
		{[]string{"list", "-o", "yaml"}, 0, "url: https://example.com/a.tgz?…\n"},
		{[]string{"get", "git", "-o", "yaml"}, 0, "url: https://example.com/a.git\n"},
		{[]string{"get", "none"}, 1, "there is neither a packagerepository none in namespace shop nor a clusterpackagerepository of that name"},
		{[]string{"add", "a"}, 1, "the repository has no source"},
		{[]string{"add", "a", "b", "--git", "c"}, 1, "--url and --git contradict each other"},
		{[]string{"add", "a", "--http", "https://me:hunter2@example.com"}, 1, "the URL has credentials"},
		{[]string{"add", "a", "--git", "https://me:hunter2@example.com"}, 1, "the URL has credentials"},
		{[]string{"add", "a", "b", "--ref", "main"}, 1, "--ref is for --git"},
		{[]string{"add", "a", "b", "--tag-constraint", "new"}, 1, "arguments invalid"},
		{[]string{"delete", "git"}, 0, "packagerepository shop/git is deleted, after T\n"},
	} {
		got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"repo"}, test.args...)...)
		text := clitest.Times.ReplaceAllString(got.Out, " T") + got.Err
		if got.Code != test.code || !strings.Contains(text, test.want) || strings.Contains(text, "hunter2") {
			t.Errorf("%v: code %d\n%s\nwant %s", test.args, got.Code, text, test.want)
		}
	}
	var stable corev1alpha1.PackageRepository
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "stable"}, &stable))
	want := corev1alpha1.PackageRepositorySpec{
		Source: corev1alpha1.RepositorySource{Image: &corev1alpha1.RepositoryImageSource{
			Ref: "example.com/repo:v2", ImagePullSecrets: []corev1alpha1.LocalSecretReference{{Name: "pull"}},
			TagSelection: &corev1alpha1.VersionSelection{Version: ">=1", Prereleases: &corev1alpha1.Prereleases{Identifiers: []string{"rc"}}},
		}},
	}
	require.Equal(t, want, stable.Spec)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "git"}, &stable); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
}

// No output has a possible credential of an address: a query, or a password that an older
// definition accepted.
func TestRepositoriesAreShownWithoutCredentials(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		source corev1alpha1.RepositorySource
		want   string
	}{
		"a signed URL":        {corev1alpha1.RepositorySource{HTTP: &corev1alpha1.RepositoryHTTPSource{URL: "https://example.com/a.tgz?X-Amz-Signature=planted"}}, "https://example.com/a.tgz?…"},
		"one that is invalid": {corev1alpha1.RepositorySource{HTTP: &corev1alpha1.RepositoryHTTPSource{URL: "https://example.com/%zz?sig=planted"}}, "https://example.com/%zz?…"},
		"a fragment":          {corev1alpha1.RepositorySource{HTTP: &corev1alpha1.RepositoryHTTPSource{URL: "https://example.com/a#token=planted"}}, "https://example.com/a"},
		"git":                 {corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{URL: "https://example.com/a.git?private_token=planted", Ref: "main"}}, "https://example.com/a.git?…"},
		"a password":          {corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{URL: "ssh://me:planted@example.com/a.git"}}, "ssh://me:xxxxx@example.com/a.git"},
		"a user":              {corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{URL: "https://planted@example.com/a.git"}}, "https://example.com/a.git"},
		"a password by scp":   {corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{URL: "me:planted@example.com:a.git"}}, "…@example.com:a.git"},
		"one of no scheme":    {corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{URL: "me_x:planted@example.com:a.git"}}, "…@example.com:a.git"},
		"git by scp":          {corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{URL: "git@example.com:a.git"}}, "git@example.com:a.git"},
	} {
		repository := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stable"}}
		repository.Spec.Source = tc.source
		applied, err := json.Marshal(repository)
		require.NoError(t, err)
		repository.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: string(applied), "team": "shop"}
		c := clustertest.FakeCluster(t, repository)
		for _, args := range [][]string{{"get", "stable", "-o", "json"}, {"list", "-o", "json"}, {"get", "stable", "-o", "yaml"}, {"list", "-o", "yaml"}, {"get", "stable"}, {"list"}} {
			got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"repo"}, args...)...)
			if got.Code != 0 || strings.Contains(got.Out+got.Err, "planted") || slices.Contains(args, "-o") && (!strings.Contains(got.Out, tc.want) || !strings.Contains(got.Out, "team")) {
				t.Errorf("%s, %v: %+v, want %s", name, args, got, tc.want)
			}
		}
		stored := &corev1alpha1.PackageRepository{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(repository), stored); err != nil || !cmp.Equal(stored.Spec.Source, tc.source) {
			t.Errorf("%s: the repository is changed: %+v, %v", name, stored.Spec.Source, err)
		}
	}
}

// An update is repeated if the manager has written the repository in the meantime.
func TestSourceUpdateRaces(t *testing.T) {
	t.Parallel()
	repository := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stable"}}
	repository.Spec.Source.Image = &corev1alpha1.RepositoryImageSource{Ref: "example.com/repo:v1"}
	c := clustertest.FakeCluster(t, repository)
	server, patches := c.WithWatch, 0
	c.WithWatch = interceptor.NewClient(server, interceptor.Funcs{
		Patch: func(ctx context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if patches++; patches == 1 {
				var written corev1alpha1.PackageRepository
				if err := server.Get(ctx, client.ObjectKeyFromObject(obj), &written); err != nil {
					return err
				}
				written.Status.Packages = 7
				if err := server.Update(ctx, &written); err != nil {
					return err
				}
			}
			return server.Patch(ctx, obj, patch, opts...)
		},
	})
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "repo", "update", "stable", "--url", "example.com/repo:v2", "--wait=false")
	var stable corev1alpha1.PackageRepository
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(repository), &stable))
	if got.Code != 0 || patches != 2 || stable.Spec.Source.Image.Ref != "example.com/repo:v2" || stable.Status.Packages != 7 {
		t.Errorf("%+v after %d patches: %+v", got, patches, stable)
	}
}

func TestValuesOfOffers(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0", "2.0.0"))
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "available", "shop.example.com/v1.0.0", "--values")
	want := `# integer; ≥ 1
size: 3

# The title.
# string; required
title: ""

# string; at least 8 characters; password; a secret: install --sensitive keeps it in a Secret
# token: ""
`
	if diff := cmp.Diff(clitest.Result{Code: 0, Out: want, Err: ""}, got, cmp.AllowUnexported(clitest.Result{})); diff != "" {
		t.Error(diff)
	}
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "available", "shop.example.org", "--values"); got.Code != 1 || !strings.Contains(got.Err, `Did you mean "shop.example.com"?`) {
		t.Errorf("an unknown package: %+v", got)
	}
}

func TestRepositoryJSON(t *testing.T) {
	t.Parallel()
	stable := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stable"}}
	stable.Spec.Source.Image = &corev1alpha1.RepositoryImageSource{Ref: "example.com/repo:latest"}
	c := clustertest.FakeCluster(t, stable)
	golden.JSON(t, "repo-list", clitest.InvokeOn(t, clustertest.DialTo(c), "", "repo", "list", "-o", "json").Out)
	golden.JSON(t, "repo-get", clitest.InvokeOn(t, clustertest.DialTo(c), "", "repo", "get", "stable", "-o", "json").Out)
}
