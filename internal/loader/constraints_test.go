package loader

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
)

func inCluster(version string, openShift string) func(*Options) {
	return func(o *Options) {
		o.Environment = &manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: version}}
		if openShift != "" {
			o.Environment.OpenShift = &manifestsv1alpha1.PackageEnvironmentOpenShift{Version: openShift}
		}
	}
}

func managedBy(version string) func(*Options) {
	return func(o *Options) {
		inCluster("v1.36.3", "")(o)
		o.ManagerVersion = version
	}
}

// An unmet constraint stops the package before any other check.
func TestConstraints(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, constraint string
		in                 func(*Options)
		want               string
	}{
		{"every cluster is Kubernetes", "{platform: [Kubernetes]}", inCluster("v1.36.3", "4.18.1"), ""},
		{"one platform of several is enough", "{platform: [Kubernetes, OpenShift]}", inCluster("v1.36.3", ""), ""},
		{"no OpenShift", "{platform: [OpenShift]}", inCluster("v1.36.3", ""), "spec.constraints[0].platform: the cluster is not one of [OpenShift]"},
		{"OpenShift", "{platform: [OpenShift]}", inCluster("v1.36.3", "4.18.1"), ""},
		{"a version within the range", "{platformVersion: {name: Kubernetes, range: '>=1.29, <2'}}", inCluster("v1.36.3", ""), ""},
		{"prerelease and build do not count", "{platformVersion: {name: Kubernetes, range: '>=1.29.4'}}", inCluster("v1.29.4-gke.1+x", ""), ""},
		{"a version below", "{platformVersion: {name: Kubernetes, range: '>=1.37'}}", inCluster("v1.36.3", ""), "spec.constraints[0].platformVersion.range: Kubernetes v1.36.3 is not within >=1.37"},
		{"other spellings of ranges", "{platformVersion: {name: Kubernetes, range: '>=1.29 && !1.36.3'}}", inCluster("v1.36.3", ""), "Kubernetes v1.36.3 is not within"},
		{"another platform is not asked", "{platformVersion: {name: OpenShift, range: '>=99'}}", inCluster("v1.36.3", ""), ""},
		{"OpenShift's version", "{platformVersion: {name: OpenShift, range: '>=4.19'}}", inCluster("v1.36.3", "4.18.1"), "OpenShift 4.18.1 is not within >=4.19"},
		{"no version at all", "{platformVersion: {name: Kubernetes, range: '>=1.29'}}", inCluster("unknown", ""), `the version of Kubernetes, "unknown", is not a semantic version`},
		{"the manager's version", "{platformVersion: {name: Lockstep, range: '>=0.2'}}", managedBy("v0.2.1"), ""},
		{"a candidate of a release of the manager", "{platformVersion: {name: Lockstep, range: '>=0.2'}}", managedBy("v0.2.0-rc.1"), ""},
		{"an earlier manager", "{platformVersion: {name: Lockstep, range: '>=0.3'}}", managedBy("v0.2.1"), "spec.constraints[0].platformVersion.range: Lockstep v0.2.1 is not within >=0.3. Install a version of Lockstep, or of the package, that fits."},
		{"a manager without a version", "{platformVersion: {name: Lockstep, range: '>=99'}}", managedBy(""), ""},
		{"all fields of a constraint", "{platform: [Kubernetes], platformVersion: {name: Kubernetes, range: '>=1.37'}}", inCluster("v1.36.3", ""), "is not within >=1.37"},
	} {
		// The broken template proves that the package is not rendered.
		files := pkg("manifest.yaml", plain+"  constraints: ["+test.constraint+"]\n", "a.yaml.gotmpl", "{{fail `rendered`}}")
		_, err := Load(context.Background(), files, namespaced(test.in))
		var vs violation.Violations
		if !errors.As(err, &vs) || len(vs) != 1 {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		if test.want == "" {
			if vs[0].Reason != violation.ReasonTemplate {
				t.Errorf("%s: %s", test.reason, vs)
			}
		} else if !strings.Contains(vs.Error(), test.want) || vs.ConditionReason() != corev1alpha1.ReasonConstraintsFailed {
			t.Errorf("%s: %s (%s)", test.reason, vs, vs.ConditionReason())
		}
	}
}

func TestUniqueInScope(t *testing.T) {
	t.Parallel()
	own := Other{Namespace: "team-a", Name: "my-shop"}
	sameNamespace, elsewhere, ofCluster := Other{Namespace: "team-a", Name: "second"}, Other{Namespace: "team-b", Name: "my-shop"}, Other{Name: "shop"}
	for _, test := range []struct {
		reason, scope string
		cluster       bool
		others        []Other
		want          string
	}{
		{"alone", "", false, nil, ""},
		{"the package itself is not another one", "", false, []Other{own}, ""},
		{"another in the namespace", "", false, []Other{sameNamespace, own}, "the package may be installed once in its namespace, and Package team-a/second is installed. Delete one of the two; Package team-a/second stays as it is."},
		{"another elsewhere", "", false, []Other{elsewhere, ofCluster}, ""},
		{"another elsewhere, for any image", "Cluster", false, []Other{elsewhere, ofCluster}, ""},
		{"in its namespace, for any image", "Cluster", false, []Other{sameNamespace}, "once in its namespace, and Package team-a/second is installed"},
		{"the first by name is reported", "Cluster", false, []Other{{Namespace: "team-a", Name: "third"}, elsewhere, sameNamespace, ofCluster}, "and Package team-a/second is installed"},
		{"no Package is in the way of a ClusterPackage", "", true, []Other{elsewhere, sameNamespace}, ""},
		{"nor with an explicit scope", "Cluster", true, []Other{elsewhere, sameNamespace}, ""},
		{"among ClusterPackages only", "Namespace", true, []Other{elsewhere}, ""},
		{"another ClusterPackage in the cluster", "Cluster", true, []Other{elsewhere, ofCluster}, "once in its cluster as a ClusterPackage, and ClusterPackage shop is installed"},
		{"another ClusterPackage", "Namespace", true, []Other{ofCluster}, "once in its cluster as a ClusterPackage, and ClusterPackage shop is installed"},
	} {
		constraint := "{}"
		if test.scope != "" {
			constraint = "{scope: " + test.scope + "}"
		}
		files := pkg("manifest.yaml", plain+"  constraints: [{uniqueInScope: "+constraint+"}]\n")
		asked := ""
		opts := namespaced(inCluster("v1.36.3", ""), func(o *Options) {
			o.Others = func(name string) []Other {
				asked = name
				return test.others
			}
			if test.cluster {
				cluster(o)
			}
		})
		got := lines(t, files, opts)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) || asked != "shop" {
			t.Errorf("%s (asked for %q): %s", test.reason, asked, got)
		}
	}

	files := pkg("manifest.yaml", plain+"  constraints: [{uniqueInScope: {}}]\n")
	if got := lines(t, files, namespaced(inCluster("v1.36.3", ""))); !strings.Contains(got, "Not supported by this version in manifest.yaml idx 0 line 7: spec.constraints: uniqueInScope cannot be checked") {
		t.Error("what cannot be checked is refused:", got)
	}
	require.Equal(t, "", lines(t, files, namespaced()), "without a cluster there is no constraint")
}

// Components of different packages are distinguished.
func TestNames(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain+"  components: {}\n", "components/web/manifest.yaml", plain)
	for component, want := range map[string]string{"": "shop", "web": "shop/web"} {
		p, err := Load(context.Background(), files, namespaced(func(o *Options) { o.Component = component }))
		if err != nil || p.Name != want {
			t.Errorf("%q: %v, %+v", component, err, p)
		}
	}
}

// The fields for catalogues are decoded and passed on. Optional features that this version does not
// support are named.
func TestManifestBeyondPackageOperator(t *testing.T) {
	t.Parallel()
	manifest := plain + `  version: 1.2.3
  packageName: shop.example.com
  release: {notes: "New.\n\n- things", date: 2026-01-31, licenses: [Apache-2.0, MIT]}
  display: {name: Shop, shortDescription: Sells., icon: shop.svg, maintainers: [{name: Ann, email: a@example.com}], categories: [trade], keywords: [cart], links: [{name: Source, url: "https://git.example.com/shop"}, {name: Old, url: "HTTP://shop.example.com:8080/?q=1#x"}], owners: [{name: Bob}, {name: Eve, email: e@example.com}], support: ask, requirements: 1 GiB}
  provides: [{apiVersion: metrics.example.com/v1, kind: Metric}]
  successDelaySeconds: 7
  dependencies: [{name: db, optional: true, package: {name: db.shared.example.com, version: '>=1', prereleases: {identifiers: [rc]}}}, {name: c, optional: true, api: {apiVersion: cert-manager.io/v1, kind: Certificate, fieldPaths: [spec.dnsNames]}}]
`

	files := pkg("manifest.yaml", manifest, "shop.svg", "<svg/>", "README.md", "# Shop\n", "a.yaml", configMap("a", "first", ""))
	p, err := Load(context.Background(), files, namespaced(inCluster("v1.36.3", "")))
	require.NoError(t, err)
	spec := p.Manifest.Spec
	if spec.PackageName != "shop.example.com" || spec.Release.Date != "2026-01-31" || spec.Display.Name != "Shop" || spec.Provides[0].Kind != "Metric" || spec.Dependencies[0].Package.Prereleases.Identifiers[0] != "rc" {
		t.Errorf("%+v", spec)
	}
	require.Equal(t, int32(7), p.Template().SuccessDelaySeconds, "the success delay does not reach the revision")

	var warnings []string
	for _, w := range p.Warnings {
		warnings = append(warnings, w.Field+": "+w.Details)
	}

	require.Equal(t, []string(nil), warnings)
	require.Equal(t, "# Shop\n", Description(p.Manifest, files))

	files["README.md"] = []byte(strings.Repeat("ü", limits.ProseBytes) + "\xff")
	if len(Description(p.Manifest, files)) > limits.ProseBytes {
		t.Error("the description is not bounded")
	}

	p.Manifest.Spec.Display.LongDescription = "own"
	require.Equal(t, "own", Description(p.Manifest, files))
}

func TestIcons(t *testing.T) {
	t.Parallel()
	picture, err := os.ReadFile("../../examples/format/my-icon.png")
	require.NoError(t, err)
	for _, test := range []struct{ path, content, want string }{
		{"a.svg", "<?xml?><svg/>", ""}, {"a.png", string(picture), ""},
		{"a.png", "<svg/>", `the file "a.png" is not a PNG picture`}, {"a.svg", "x", `the file "a.svg" is not a SVG picture`}, {"a.gif", "GIF89a", "neither .png nor .svg"},
		{"a.svg", "<svg>" + strings.Repeat("x", limits.IconBytes), "Limit exceeded in manifest.yaml"}, {"../a.svg", "", `the package has no file "../a.svg"`},
	} {
		files := pkg("manifest.yaml", plain+"  display: {icon: "+test.path+"}\n")
		if !strings.HasPrefix(test.path, "..") {
			files[test.path] = []byte(test.content)
		}
		if got := lines(t, files, namespaced()); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %s", test.path, got)
		}
	}
}

// TestClasses checks that no rule about places applies to objects that the agent of a class writes,
// because its cluster is unknown. The class default means this cluster. An ObjectSetPhase gets no
// value of a Secret.
func TestClasses(t *testing.T) {
	t.Parallel()
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}\n"
	for name, test := range map[string]struct {
		class string
		files []string
		opts  Options
		want  string
	}{
		"cluster-scoped elsewhere":     {"far", []string{"a.yaml", role}, namespaced(), ""},
		"cluster-scoped here":          {"default", []string{"a.yaml", role}, namespaced(), "ClusterRole is cluster-scoped"},
		"another namespace elsewhere":  {"far", []string{"a.yaml", configMap("a", "first", "  namespace: b\n")}, namespaced(), ""},
		"the same elsewhere and here":  {"far", []string{"a.yaml", configMap("a", "first", ""), "b.yaml", configMap("a", "second", "")}, namespaced(), ""},
		"the same in default and here": {"default", []string{"a.yaml", configMap("a", "first", ""), "b.yaml", configMap("a", "second", "")}, namespaced(), "Duplicate"},
		"twice elsewhere":              {"far", []string{"a.yaml", configMap("a", "first", ""), "b.yaml", configMap("a", "first", "")}, namespaced(), "Duplicate"},
		"a value of a Secret": {"default", []string{"a.yaml.gotmpl", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}\nstringData: {p: '{{.config.password}}'}\n"},
			withSecret(), `phase "first" has the class "default", and its ObjectSetPhase would hold a value that came from a Secret`},
		"no value of a Secret": {"far", []string{"a.yaml.gotmpl", configMap("a", "first", "")}, withSecret(), ""},
	} {
		manifest := strings.Replace(plain, "{name: first}", "{name: first, class: "+test.class+"}", 1) + anyConfig
		pkg, err := Load(context.Background(), pkg(append([]string{"manifest.yaml", manifest}, test.files...)...), test.opts)
		switch {
		case err == nil && test.want != "", err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		case err == nil && pkg.Phases[0].Class != test.class:
			t.Errorf("%s: the phase is %+v", name, pkg.Phases[0])
		}
	}
}
