package install_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

func TestInstallChecksBeforeItWrites(t *testing.T) {
	t.Parallel()
	good, secret := clitest.ValuesFile(t, "title: Corner\n"), clitest.ValuesFile(t, "title: Corner\ntoken: hunter2\n")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"unknown package":      {[]string{"shpo.example.com"}, `Did you mean "shop.example.com"?`},
		"no version":           {[]string{"shop.example.com", "--version", ">=3"}, `no version of shop.example.com can be installed with ">=3"`},
		"why each is not":      {[]string{"shop.example.com", "--version", ">=3"}, "\n  2.0.0  "},
		"no constraint":        {[]string{"shop.example.com", "--version", "newest"}, "arguments invalid: --version: "},
		"required value":       {[]string{"shop.example.com"}, "the values do not fit shop.example.com 2.0.0:\n  title: Required value\nTo see its values: kubectl package available shop.example.com/2.0.0 --values"},
		"unknown key":          {[]string{"shop.example.com", "--values", clitest.ValuesFile(t, "title: a\nsice: 1\n")}, `sice: unknown key. Did you mean "size"?`},
		"wrong type":           {[]string{"shop.example.com", "--values", clitest.ValuesFile(t, "title: a\nsize: many\n")}, "size: Invalid value"},
		"sensitive without":    {[]string{"shop.example.com", "--sensitive"}, "--sensitive needs --values"},
		"values and config":    {[]string{"shop.example.com", "--values", good, "--config", good}, "contradict each other"},
		"version of an image":  {[]string{"example.com/shop:v1", "--version", "1"}, "is an image"},
		"no name of a package": {[]string{"Shop"}, "is neither an image nor the name of a package"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0", "2.0.0"))
			got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"install"}, test.args...)...)
			if got.Code != 1 || !strings.Contains(got.Err, test.want) {
				t.Errorf("%+v, want %s", got, test.want)
			}
			clustertest.Unwritten(t, c)
		})
	}
	c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0"))
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", "shop.example.com", "--values", secret, "--sensitive")
	if got.Code != 1 || !strings.Contains(got.Err, "token: ") || strings.Contains(got.Err, "hunter2") {
		t.Errorf("a secret that is wrong: %+v", got)
	}
	clustertest.Unwritten(t, c)
}

// market returns the offer of the repository stable for a package that provides example.com/v1
// Market.
func market(name string) client.Object {
	a := clustertest.OfferedAs("shop", "1.0.0").(*corev1alpha1.AvailablePackage)
	a.Name, a.Spec.PackageName = name, name
	a.Spec.Versions[0].Provides[0].Kind = "Market"
	return a
}

// upgrade keeps the API of a packageRef, and uses the package that it leads to. install replaces it.
func TestUpgradeByAPI(t *testing.T) {
	t.Parallel()
	api := &corev1alpha1.APIReference{APIVersion: "example.com/v1", Kind: "Shop"}
	pkg := clustertest.Following("", "1.0.0")
	pkg.Spec.PackageRef = &corev1alpha1.PackageReference{API: api}
	pkg.Status.Resolved.CatalogName, pkg.Status.LastAttempted.PackageName, pkg.Status.LastAttempted.API = "shop.example.com", "shop.example.com", api
	c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0", "2.0.0"), market("market.example.com"), pkg)
	read := func() *corev1alpha1.Package {
		pkg, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeNamespaced, "web"))
		require.NoError(t, err)
		return pkg.(*corev1alpha1.Package)
	}
	run := func(want string, args ...string) {
		t.Helper()
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", args...); !strings.Contains(got.Out+got.Err, want) {
			t.Errorf("%v: %+v, want %s", args, got, want)
		}
	}
	run("what provides example.com/v1 Shop → what provides example.com/v1 Shop <2", "upgrade", "web", "--version", "<2", "--wait=false")
	if ref := read().Spec.PackageRef; ref.Name != "" || ref.Version != "<2" || ref.API == nil {
		t.Errorf("%+v", ref)
	}
	run("shop.example.com", "list")
	values := clitest.ValuesFile(t, "title: Corner\n")
	// The name of the same package is not a change. The name of another one is.
	run("what provides example.com/v1 Shop <2 → shop.example.com", "install", "shop.example.com", "web", "--wait=false", "--values", values)
	run("is the package shop.example.com and would change to another one, market.example.com", "install", "market.example.com", "web", "--wait=false", "--values", values)
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
			c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0", "2.0.0"), clustertest.OfferedAs("", "1.0.0"))
			const text = "# of the corner\ntitle: Corner\n"
			got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"install", "shop.example.com", "web", "--wait=false"}, append(test.args, clitest.ValuesFile(t, text))...)...)
			if got.Code != 0 || !strings.Contains(got.Out, "web created") {
				t.Fatalf("%+v", got)
			}
			scope := map[bool]corev1alpha1.Scope{true: corev1alpha1.ScopeCluster, false: corev1alpha1.ScopeNamespaced}[test.sensitive]
			pkg, err := c.Read(t.Context(), c.Target(scope, "web"))
			require.NoError(t, err)
			require.Equal(t, &test.want, pkg.PackageSpec())
			values := (&desired.Values{Sensitive: test.sensitive}).Object(c.Target(scope, "web"))
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(values), values); err != nil || values.GetNamespace() != test.namespace {
				t.Fatalf("%v, in %s", err, values.GetNamespace())
			}
			if (&desired.Values{Text: []byte(text)}).Replace(values) {
				t.Errorf("the values are not as in the file")
			}
			owners := []metav1.OwnerReference{{APIVersion: corev1alpha1.GroupVersion.String(), Kind: scope.Kind("Package"), Name: "web", UID: "new"}}
			require.Equal(t, owners, values.GetOwnerReferences())
			if strings.Contains(got.Out+got.Err, "Corner") {
				t.Error("values are printed")
			}
		})
	}
}

func TestUpgrade(t *testing.T) {
	t.Parallel()
	values := clitest.ValuesFile(t, "title: Corner\n")
	passedOver := resolver.PassedOver("1.0.0", "2.0.0", resolver.Result{Reason: "UnknownPackage", Message: "no repository offers db"})
	for name, test := range map[string]struct {
		constraint, installed string
		args                  []string
		code                  int
		want                  string
		spec                  string
	}{
		"a wider constraint":              {"<2", "1.2.0", []string{"--version", "<3", "--wait=false"}, 0, "changed: shop.example.com <2 → shop.example.com <3", "<3"},
		"at the newest":                   {"", "2.0.0", nil, 0, "package shop/web is already at 2.0.0, the highest version that it allows\n", ""},
		"awaits its activation":           {"", "2.0.0", nil, 1, "Error: package shop/web: revision 2 awaits its activation\n", ""},
		"passed over":                     {"", "1.0.0", nil, 0, "\nnote: shop.example.com: " + passedOver + "\n", ""},
		"held back":                       {"<2", "1.2.0", nil, 0, "is already at 1.2.0, the highest version that it allows", "<2"},
		"a downgrade":                     {"", "2.0.0", []string{"--version", "<2"}, 1, "lower than 2.0.0", ""},
		"an allowed one":                  {"", "2.0.0", []string{"--version", "<2", "--allow-downgrade", "--wait=false"}, 0, "shop.example.com → shop.example.com <2, once below 2.0.0", "<2"},
		"of a package that never existed": {"", "2.0.0", []string{"--version", "<2", "--wait=false"}, 0, "shop.example.com → shop.example.com <2\n", "<2"},
		"no downgrade needed":             {"", "2.0.0", []string{"--version", ">=1", "--allow-downgrade", "--wait=false"}, 0, "shop.example.com → shop.example.com >=1\n", ">=1"},
		"no version":                      {"", "2.0.0", []string{"--version", "5.x"}, 1, "no version of shop.example.com can be installed", ""},
		"values of a withdrawn version":   {"", "3.0.0", []string{"--values", values, "--override", "db={package: {version: <2}}", "--wait=false"}, 0, "changed: sources of values, dependencies", ""},
		"a withdrawn version":             {"", "3.0.0", nil, 1, "no version of shop.example.com can be installed\n  2.0.0  is lower than 3.0.0", ""},
		"of withdrawn manifests":          {"", "4.0.0", []string{"--values", values}, 1, "no version of shop.example.com can be installed", ""},
		"wrong values":                    {"", "2.0.0", []string{"--values", "testdata/none.yaml"}, 1, "read the values", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := clustertest.Following(test.constraint, test.installed)
			if name == "of a package that never existed" {
				meta.RemoveStatusCondition(&old.Status.Conditions, corev1alpha1.ConditionAvailable)
			}
			if test.installed == "3.0.0" {
				old.Status.Resolved.Image = "example.com/shop:v3"
				old.Status.Dependencies = []corev1alpha1.DependencyStatus{{Dependency: corev1alpha1.Dependency{Name: "db"}}}
			}
			old.Status.Conditions = append(old.Status.Conditions, map[string][]metav1.Condition{
				"awaits its activation": {clustertest.Condition("AwaitingActivation", "True", "AwaitingActivation", "revision 2 awaits its activation")},
				"passed over":           {clustertest.Condition("Resolved", "True", "Resolved", "shop.example.com: "+passedOver)},
			}[name]...)
			c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0", "1.2.0", "2.0.0"), old)
			target := c.Target(corev1alpha1.ScopeNamespaced, "web")
			if name == "passed over" {
				clustertest.Manager(t, c, target, func(pkg corev1alpha1.GenericPackage) corev1alpha1.PackageStatus {
					pkg.PackageStatus().LastHandledRetry = pkg.GetAnnotations()[corev1alpha1.RetryAnnotation]
					return *pkg.PackageStatus()
				})
			}
			got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"upgrade", "web"}, test.args...)...)
			if got.Code != test.code || !strings.Contains(got.Out+got.Err, test.want) {
				t.Errorf("%+v, want %s", got, test.want)
			}
			pkg, err := c.Read(t.Context(), target)
			if err != nil || pkg.PackageSpec().PackageRef.Version != test.spec {
				t.Errorf("%v, spec %+v", err, pkg.PackageSpec().PackageRef)
			}
			once := pkg.GetAnnotations()[corev1alpha1.DowngradeFromAnnotation]
			if want := map[bool]string{true: "2.0.0"}[name == "an allowed one"]; once != want || pkg.PackageSpec().DowngradePolicy != "" {
				t.Errorf("downgrade from %q, policy %q", once, pkg.PackageSpec().DowngradePolicy)
			}
		})
	}
	image := clustertest.Installed(clustertest.Available())
	if got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, image)), "", "upgrade", "web"); got.Code != 1 || !strings.Contains(got.Err, "kubectl package install IMAGE clusterpackage/web") {
		t.Errorf("%+v", got)
	}
}
