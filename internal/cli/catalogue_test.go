package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
)

const shopSchema = `{"type":"object","required":["title"],"properties":{
	"title":{"type":"string","description":"The title."},
	"size":{"type":"integer","minimum":1,"default":3},
	"token":{"type":"string","format":"password","minLength":8}}}`

// offeredAs is what the repository stable offers of shop.example.com.
func offeredAs(namespace string, versions ...string) client.Object {
	a := corev1alpha1.ScopeOf(namespace).NewAvailablePackage()
	a.SetNamespace(namespace)
	a.SetName("shop.example.com")
	spec := a.AvailableSpec()
	spec.PackageName, spec.Display = "shop.example.com", &corev1alpha1.PackageDisplay{Name: "Shop", ShortDescription: "Sells."}
	for _, v := range versions {
		spec.Versions = append(spec.Versions, corev1alpha1.AvailableVersion{
			Version: v, Image: "127.0.0.1:1/shop@sha256:" + strings.Repeat("a", 64), Repository: "stable",
			ConfigSchema: &runtime.RawExtension{Raw: []byte(shopSchema)},
			Release:      &corev1alpha1.PackageRelease{Notes: "Notes of " + v + ".", Licenses: []string{"MIT"}, Date: "2026-01-31T12:00:00Z"},
			Provides:     []corev1alpha1.ProvidedAPI{{APIVersion: "example.com/v1", Kind: "Shop"}},
		})
	}
	return a.(client.Object)
}

func valuesFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAvailable(t *testing.T) {
	t.Parallel()
	old := offeredAs("shop", "1.0.0", "1.2.0", "2.0.0", "3.0.0-rc.1").(*corev1alpha1.AvailablePackage)
	old.Spec.Versions[2].Retracted = "it loses orders"
	old.Spec.Versions[1].NotCarriedOver = []string{"template[0].ytt"}
	needs := &old.Spec.Versions[0]
	needs.UniqueInScope, needs.Scopes = corev1alpha1.UniqueScopeCluster, []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced}
	needs.Dependencies = []corev1alpha1.Dependency{
		{Name: "db", Package: &corev1alpha1.DependencyPackage{Name: "db.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: ">=1, <3"}}},
		{Name: "certs", Optional: true, API: &corev1alpha1.DependencyAPI{APIVersion: "cert-manager.io/v1", Kind: "Certificate"}},
	}
	c := fakeCluster(t, old, offeredAs("", "0.9.0"))
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"list"}, []string{"NAME              DISPLAY NAME  NEWEST  REPOSITORY\nshop.example.com  Shop          1.0.0   PackageRepository/stable\n"}},
		{[]string{"list", "--cluster"}, []string{"0.9.0   ClusterPackageRepository/stable\n"}},
		{[]string{"list", "-A"}, []string{"(cluster)  shop.example.com  Shop          0.9.0", "shop       shop.example.com  Shop          1.0.0"}},
		{[]string{"get", "shop.example.com"}, []string{"Is           Shop: Sells.", "template[0].ytt", "retracted", "it loses orders", "  0.9.0       2026-01-31  ClusterPackageRepository/stable"}},
		{[]string{"get", "shop.example.com/1.2.0"}, []string{"Licenses     MIT", "Provides     example.com/v1 Shop", "Release notes\n  Notes of 1.2.0.\n", "Not here", "template[0].ytt"}},
		{[]string{"get", "shop.example.com/1.0.0"}, []string{
			"Installs as  Package\n", "At most      one in a cluster\n",
			"Depends on   db: package db.example.com >=1, <3\n               certs: API cert-manager.io/v1 Certificate (optional)\n  Provides     example.com/v1 Shop\n",
		}},
		{[]string{"get", "shop.example.com/1.0.0", "--query", ".versions[0].dependencies[0].package.name"}, []string{"db.example.com\n"}},
		{[]string{"get", "shop.example.com"}, []string{"1.0.0       2026-01-31  PackageRepository/stable         waits for its dependencies: db: "}},
		{[]string{"get", "shop.example.com", "--values-schema"}, []string{"shop.example.com 1.0.0", "title  string   required", "size   integer  3", "token  string"}},
		{[]string{"get", "shop.example.com", "--query", "[.versions[].version] | join(\" \")"}, []string{"3.0.0-rc.1 2.0.0 1.2.0 1.0.0 0.9.0\n"}},
	} {
		got := invokeOn(t, dialTo(c), "", append([]string{"available"}, test.args...)...)
		if got.code != 0 {
			t.Errorf("%v: %+v", test.args, got)
		}
		for _, want := range test.want {
			if !strings.Contains(got.out, want) {
				t.Errorf("%v: %q is missing in\n%s%s", test.args, want, got.out, got.err)
			}
		}
	}
	for arg, want := range map[string]string{
		"shop.exampel.com":       `no repository offers shop.exampel.com in namespace shop. Did you mean "shop.example.com"? See: kubectl package available list`,
		"shop":                   "Did you mean shop.example.com?",
		"shop.example.com/4.0.0": "version 4.0.0 of shop.example.com is not offered; these are: 3.0.0-rc.1, 2.0.0",
		"a/b/c":                  `"a/b/c" is neither NAME nor NAME/VERSION`,
	} {
		if got := invokeOn(t, dialTo(c), "", "available", "get", arg); got.code != 1 || !strings.Contains(got.err, want) {
			t.Errorf("%s: %+v, want %s", arg, got, want)
		}
	}
}

// unwritten fails where anything was written.
func unwritten(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1alpha1.PackageList{}} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if text, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(list); text["items"] != nil && len(text["items"].([]any)) > 0 {
			t.Errorf("something was written: %v", text["items"])
		}
	}
}

func TestInstallChecksBeforeItWrites(t *testing.T) {
	t.Parallel()
	good, secret := valuesFile(t, "title: Corner\n"), valuesFile(t, "title: Corner\ntoken: hunter2\n")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"unknown package":      {[]string{"shpo.example.com"}, `Did you mean "shop.example.com"?`},
		"no version":           {[]string{"shop.example.com", "--version", ">=3"}, `no version of shop.example.com can be installed with ">=3"`},
		"why each is not":      {[]string{"shop.example.com", "--version", ">=3"}, "\n  2.0.0  "},
		"no constraint":        {[]string{"shop.example.com", "--version", "newest"}, "arguments invalid: --version: "},
		"required value":       {[]string{"shop.example.com"}, "the values do not fit shop.example.com 2.0.0:\n  title: Required value\nSee what it takes: kubectl package values shop.example.com/2.0.0"},
		"unknown key":          {[]string{"shop.example.com", "--values", valuesFile(t, "title: a\nsice: 1\n")}, `sice: unknown key. Did you mean "size"?`},
		"wrong type":           {[]string{"shop.example.com", "--values", valuesFile(t, "title: a\nsize: many\n")}, "size: Invalid value"},
		"sensitive without":    {[]string{"shop.example.com", "--sensitive"}, "--sensitive is about --values"},
		"values and config":    {[]string{"shop.example.com", "--values", good, "--config", good}, "contradict each other"},
		"version of an image":  {[]string{"example.com/shop:v1", "--version", "1"}, "is an image"},
		"no name of a package": {[]string{"Shop"}, "is neither an image nor the name of a package"},
		"two names":            {[]string{"shop.example.com", "a", "--name", "b"}, "contradict each other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fakeCluster(t, offeredAs("shop", "1.0.0", "2.0.0"))
			got := invokeOn(t, dialTo(c), "", append([]string{"install"}, test.args...)...)
			if got.code != 1 || !strings.Contains(got.err, test.want) {
				t.Errorf("%+v, want %s", got, test.want)
			}
			unwritten(t, c)
		})
	}
	c := fakeCluster(t, offeredAs("shop", "1.0.0"))
	got := invokeOn(t, dialTo(c), "", "install", "shop.example.com", "--values", secret, "--sensitive")
	if got.code != 1 || !strings.Contains(got.err, "token: ") || strings.Contains(got.err, "hunter2") {
		t.Errorf("a secret that is wrong: %+v", got)
	}
	unwritten(t, c)
}

func TestInstallFromTheCatalogue(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args      []string
		namespace string
		want      corev1alpha1.PackageSpec
		sensitive bool
	}{
		"a constraint": {
			args: []string{"--version", ">=1, <2", "--prereleases=rc", "--service-account", "seller", "--values"}, namespace: "shop",
			want: corev1alpha1.PackageSpec{
				PackageRef: &corev1alpha1.PackageReference{Name: "shop.example.com", VersionSelection: corev1alpha1.VersionSelection{
					Version: ">=1, <2", Prereleases: &corev1alpha1.Prereleases{Identifiers: []string{"rc"}},
				}},
				ServiceAccountName: "seller",
				ConfigFrom:         []corev1alpha1.ValueSource{{ConfigMapKeyRef: &corev1alpha1.ConfigMapKeyReference{Name: "web-values", Key: "values.yaml"}}},
			},
		},
		"another cluster": {
			args: []string{"--target-kubeconfig-secret", "edge/config", "--target-namespace=stores", "--values"}, namespace: "shop",
			want: corev1alpha1.PackageSpec{
				PackageRef: &corev1alpha1.PackageReference{Name: "shop.example.com"},
				TargetRef: &corev1alpha1.TargetReference{
					KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "edge", Key: "config"}, Namespace: "stores",
				},
				ConfigFrom: []corev1alpha1.ValueSource{{ConfigMapKeyRef: &corev1alpha1.ConfigMapKeyReference{Name: "web-values", Key: "values.yaml"}}},
			},
		},
		"a secret in the cluster": {
			args: []string{"--cluster", "--prereleases", "--sensitive", "--values"}, namespace: corev1alpha1.DefaultNamespace, sensitive: true,
			want: corev1alpha1.PackageSpec{
				PackageRef: &corev1alpha1.PackageReference{Name: "shop.example.com", VersionSelection: corev1alpha1.VersionSelection{Prereleases: &corev1alpha1.Prereleases{}}},
				ConfigFrom: []corev1alpha1.ValueSource{{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: "web-values", Key: "values.yaml"}}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fakeCluster(t, offeredAs("shop", "1.0.0", "2.0.0"), offeredAs("", "1.0.0"))
			const text = "# of the corner\ntitle: Corner\n"
			got := invokeOn(t, dialTo(c), "", append([]string{"install", "shop.example.com", "web", "--wait=false"}, append(test.args, valuesFile(t, text))...)...)
			if got.code != 0 || !strings.Contains(got.out, "web created") {
				t.Fatalf("%+v", got)
			}
			scope := map[bool]corev1alpha1.Scope{true: corev1alpha1.ScopeCluster, false: corev1alpha1.ScopeNamespaced}[test.sensitive]
			pkg, err := c.Read(t.Context(), c.Target(scope, "web"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.want, pkg.PackageSpec()); diff != "" {
				t.Error(diff)
			}
			values := (&packageValues{sensitive: test.sensitive}).object(c.Target(scope, "web"))
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(values), values); err != nil || values.GetNamespace() != test.namespace {
				t.Fatalf("%v, in %s", err, values.GetNamespace())
			}
			if (&packageValues{text: []byte(text)}).replace(values) {
				t.Errorf("the values are not as in the file")
			}
			owners := []metav1.OwnerReference{{APIVersion: corev1alpha1.GroupVersion.String(), Kind: scope.Kind("Package"), Name: "web", UID: "new"}}
			if diff := cmp.Diff(owners, values.GetOwnerReferences()); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(got.out+got.err, "Corner") {
				t.Error("values are printed")
			}
		})
	}
}

// Values of others are not overwritten, and what was written for a package that is refused goes again.
func TestValuesOfOthersStay(t *testing.T) {
	t.Parallel()
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-values"}, Data: map[string]string{"values.yaml": "mine"}}
	c := fakeCluster(t, offeredAs("shop", "1.0.0"), mine)
	got := invokeOn(t, dialTo(c), "", "install", "shop.example.com", "web", "--values", valuesFile(t, "title: a"))
	if got.code != 1 || !strings.Contains(got.err, "ConfigMap shop/web-values exists and holds no values of kubectl package") {
		t.Errorf("%+v", got)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(mine), mine); err != nil || mine.Data["values.yaml"] != "mine" {
		t.Errorf("%v %v", err, mine.Data)
	}
}

// following is an installed package that follows shop.example.com.
func following(constraint, version string) *corev1alpha1.Package {
	status := available()
	status.Resolved = &corev1alpha1.ResolvedPackage{PackageName: "shop", Version: version, Repository: "PackageRepository/stable"}
	status.LastAttempted = &corev1alpha1.AttemptedVersion{Version: version}
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", Generation: 1, Finalizers: []string{"package-operator.run/metrics"}}}
	pkg.Status = status
	pkg.Spec = corev1alpha1.PackageSpec{
		PackageRef: &corev1alpha1.PackageReference{Name: "shop.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: constraint}},
		Config:     &runtime.RawExtension{Raw: []byte(`{"title":"Corner"}`)},
	}
	return pkg
}

func TestUpgrade(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		constraint, installed string
		args                  []string
		code                  int
		want                  string
		spec                  string
	}{
		"a wider constraint": {"<2", "1.2.0", []string{"--version", "<3", "--wait=false"}, 0, "changed: shop.example.com <2 → shop.example.com <3", "<3"},
		"at the newest":      {"", "2.0.0", nil, 0, "package shop/web is at 2.0.0 already, the highest that it allows\n", ""},
		"held back":          {"<2", "1.2.0", nil, 0, "2.0.0 is offered, too: kubectl package upgrade package/web -n shop --version 2.0.0", "<2"},
		"a downgrade":        {"", "2.0.0", []string{"--version", "<2"}, 1, "lower than 2.0.0", ""},
		"an allowed one":     {"", "2.0.0", []string{"--version", "<2", "--allow-downgrade", "--wait=false"}, 0, "shop.example.com → shop.example.com <2, once below 2.0.0", "<2"},
		"no need to go down": {"", "2.0.0", []string{"--version", ">=1", "--allow-downgrade", "--wait=false"}, 0, "shop.example.com → shop.example.com >=1\n", ">=1"},
		"no version":         {"", "2.0.0", []string{"--version", "5.x"}, 1, "no version of shop.example.com can be installed", ""},
		"wrong values":       {"", "2.0.0", []string{"--values", "testdata/none.yaml"}, 1, "read the values", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fakeCluster(t, offeredAs("shop", "1.0.0", "1.2.0", "2.0.0"), following(test.constraint, test.installed))
			got := invokeOn(t, dialTo(c), "", append([]string{"upgrade", "web"}, test.args...)...)
			if got.code != test.code || !strings.Contains(got.out+got.err, test.want) {
				t.Errorf("%+v, want %s", got, test.want)
			}
			pkg, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeNamespaced, "web"))
			if err != nil || pkg.PackageSpec().PackageRef.Version != test.spec {
				t.Errorf("%v, spec %+v", err, pkg.PackageSpec().PackageRef)
			}
			once := pkg.GetAnnotations()[corev1alpha1.DowngradeFromAnnotation]
			if want := map[bool]string{true: "2.0.0"}[name == "an allowed one"]; once != want || pkg.PackageSpec().DowngradePolicy != "" {
				t.Errorf("downgrade from %q, policy %q", once, pkg.PackageSpec().DowngradePolicy)
			}
		})
	}
	image := installed(available())
	if got := invokeOn(t, dialTo(fakeCluster(t, image)), "", "upgrade", "web"); got.code != 1 || !strings.Contains(got.err, "kubectl package install IMAGE clusterpackage/web") {
		t.Errorf("%+v", got)
	}
}

func TestOutdated(t *testing.T) {
	t.Parallel()
	held, moving, gone, byImage := following("<2", "1.2.0"), following("", "1.0.0"), following("", "1.0.0"), following("", "")
	byImage.Spec.PackageRef, byImage.Spec.Image = nil, "example.com/web:v1"
	moving.Name, moving.Spec.Paused = "moving", true
	gone.Name, gone.Spec.PackageRef.Name = "gone", "gone.example.com"
	byImage.Name = "image"
	unmet := following("", "1.0.0")
	unmet.Name = "unmet"
	unmet.Status.Conditions = []metav1.Condition{condition("DependenciesReady", "False", "DependenciesUnsatisfied", "db: no repository offers it\nmore: of this")}
	c := fakeCluster(t, offeredAs("shop", "1.0.0", "1.2.0", "2.0.0"), held, moving, gone, byImage, unmet)
	got := invokeOn(t, dialTo(c), "", "outdated")
	want := []string{
		"shop       unmet   shop.example.com  1.0.0      2.0.0   2.0.0   dependencies not satisfied: db: no repository offers it\n",
		"shop       gone    gone.example.com  1.0.0      -       -       no repository offers it any more",
		"shop       moving  shop.example.com  1.0.0      2.0.0   2.0.0   it is paused",
		"shop       web     shop.example.com  1.2.0      1.2.0   2.0.0   2.0.0: ",
	}
	for _, line := range want {
		if !strings.Contains(got.out, line) {
			t.Errorf("%q is missing in\n%s", line, got.out)
		}
	}
	if got.err != "note: 1 package by image, which follow no repository\n" {
		t.Errorf("got %q", got.err)
	}
	if got := invokeOn(t, dialTo(fakeCluster(t, offeredAs("shop", "1.0.0"), following("", "1.0.0"))), "", "outdated"); got.out != "Nothing is outdated\n" {
		t.Errorf("got %+v", got)
	}
}

// fetcher stands for the controller of repositories.
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
	c := fakeCluster(t)
	fetcher(t, c, func(spec *corev1alpha1.PackageRepositorySpec) metav1.Condition {
		if spec.Source.Image != nil && spec.Source.Image.Ref == "example.com/missing" {
			return metav1.Condition{Type: "Ready", Status: "False", Reason: "FetchFailed", Message: "there is no image example.com/missing"}
		}
		return metav1.Condition{Type: "Ready", Status: "True", Reason: "Fetched"}
	})
	inline := valuesFile(t, "kind: none\n")
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"add", "stable", "example.com/repo:latest", "--interval", "1m", "--priority", "3", "--secret-ref", "pull"}, 0, "packagerepository shop/stable added\npackagerepository shop/stable is ready: 1 package, 2 versions, after T\n"},
		{[]string{"add", "stable", "example.com/repo:latest", "--interval", "1m", "--priority", "3", "--secret-ref", "pull"}, 0, "packagerepository shop/stable is as wanted already\n"},
		{[]string{"add", "stable", "--url", "example.com/other"}, 1, "exists and differs. Change it: kubectl package source update packagerepository/stable -n shop"},
		{[]string{"update", "stable", "--tag-constraint", ">=1", "--prereleases=rc"}, 0, "changed\npackagerepository shop/stable is ready"},
		{[]string{"add", "missing", "example.com/missing"}, 1, "there is no image example.com/missing\nSee: kubectl package source get packagerepository/missing -n shop"},
		{[]string{"update", "stable", "--paused"}, 0, "changed\n"},
		{[]string{"kick", "stable"}, 1, "is paused, so it is not fetched. Let it go on: kubectl package source update packagerepository/stable -n shop --paused=false"},
		{[]string{"update", "stable", "--paused=false", "--url", "example.com/repo:v2"}, 0, "is ready"},
		{[]string{"kick", "stable"}, 0, "is fetched again\npackagerepository shop/stable is ready"},
		{[]string{"add", "git", "--git", "https://example.com/a.git", "--ref", "main", "--sub-path", "repo"}, 0, "is ready"},
		{[]string{"add", "http", "--http", "https://example.com/a.tgz?token=hunter2"}, 0, "is ready"},
		{[]string{"add", "inline", "--file", inline}, 0, "is ready"},
		{[]string{"list"}, 0, "http https://example.com/a.tgz "},
		{[]string{"list"}, 0, "git https://example.com/a.git main"},
		{[]string{"get", "http"}, 0, "Source     http https://example.com/a.tgz\n"},
		{[]string{"get", "none"}, 1, "there is neither a packagerepository none in namespace shop nor a clusterpackagerepository of that name"},
		{[]string{"add", "a"}, 1, "it is not said where the repository is"},
		{[]string{"add", "a", "b", "--git", "c"}, 1, "--url and --git contradict each other"},
		{[]string{"add", "a", "--http", "https://me:hunter2@example.com"}, 1, "the URL has credentials"},
		{[]string{"add", "a", "--git", "https://me:hunter2@example.com"}, 1, "the URL has credentials"},
		{[]string{"add", "a", "b", "--ref", "main"}, 1, "--ref is for --git"},
		{[]string{"add", "a", "b", "--interval", "1s"}, 1, "the least is 30s"},
		{[]string{"add", "a", "b", "--tag-constraint", "new"}, 1, "arguments invalid"},
		{[]string{"delete", "git"}, 0, "packagerepository shop/git is deleted, after T\n"},
	} {
		got := invokeOn(t, dialTo(c), "", append([]string{"source"}, test.args...)...)
		text := times.ReplaceAllString(got.out, " T") + got.err
		if got.code != test.code || !strings.Contains(text, test.want) || strings.Contains(text, "hunter2") {
			t.Errorf("%v: code %d\n%s\nwant %s", test.args, got.code, text, test.want)
		}
	}
	var stable corev1alpha1.PackageRepository
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "stable"}, &stable); err != nil {
		t.Fatal(err)
	}
	want := corev1alpha1.PackageRepositorySpec{
		Source: corev1alpha1.RepositorySource{Image: &corev1alpha1.RepositoryImageSource{
			Ref: "example.com/repo:v2", ImagePullSecrets: []corev1alpha1.LocalSecretReference{{Name: "pull"}},
			TagSelection: &corev1alpha1.VersionSelection{Version: ">=1", Prereleases: &corev1alpha1.Prereleases{Identifiers: []string{"rc"}}},
		}},
		Interval: &metav1.Duration{Duration: time.Minute}, Priority: 3,
	}
	if diff := cmp.Diff(want, stable.Spec); diff != "" {
		t.Error(diff)
	}
	var inlined corev1alpha1.PackageRepository
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "inline"}, &inlined); err != nil || inlined.Spec.Source.Inline.Files["values.yaml"] != "kind: none\n" {
		t.Errorf("%v %+v", err, inlined.Spec.Source)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "git"}, &inlined); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
}

// An update is repeated on what the manager wrote meanwhile.
func TestSourceUpdateRaces(t *testing.T) {
	t.Parallel()
	repository := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stable"}}
	repository.Spec.Source.Image = &corev1alpha1.RepositoryImageSource{Ref: "example.com/repo:v1"}
	c := fakeCluster(t, repository)
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
	got := invokeOn(t, dialTo(c), "", "source", "update", "stable", "--url", "example.com/repo:v2", "--wait=false")
	var stable corev1alpha1.PackageRepository
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(repository), &stable); err != nil {
		t.Fatal(err)
	}
	if got.code != 0 || patches != 2 || stable.Spec.Source.Image.Ref != "example.com/repo:v2" || stable.Status.Packages != 7 {
		t.Errorf("%+v after %d patches: %+v", got, patches, stable)
	}
}

func TestValuesCommand(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, offeredAs("shop", "1.0.0", "2.0.0"))
	got := invokeOn(t, dialTo(c), "", "values", "shop.example.com/v1.0.0")
	want := `# integer; ≥ 1
size: 3

# The title.
# string; required
title: ""

# string; at least 8 characters; password; a secret: install --sensitive keeps it in a Secret
# token: xxxxxxxx
`
	if diff := cmp.Diff(result{0, want, ""}, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
	dir := folder(t, goodPackage)
	if got := invokeOn(t, dialTo(c), "", "values", dir); got.code != 0 || got.out != "# string\ncolor: red\n" {
		t.Errorf("a folder: %+v", got)
	}
	if got := invokeOn(t, dialTo(c), "", "values", "shop.example.org"); got.code != 1 || !strings.Contains(got.err, `Did you mean "shop.example.com"?`) {
		t.Errorf("an unknown package: %+v", got)
	}
}
