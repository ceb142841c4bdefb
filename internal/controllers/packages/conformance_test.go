package packages

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/test/conformance"
	"lockstep.run/lockstep/test/jointneeds"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Suite{
		Operations: map[string]conformance.Operation{
			"delete": conformance.Of(deleted), "ownership": conformance.Of(owned), "scenario": conformance.Of(scripted),
			"watch-enqueue": conformance.Of(woken), "downgrade-gate": conformance.Of(gatedDowngrade),
		},
		Dialects: []string{"none", "masterminds", "crossplane"},
	}.Run(t)
}

// deleted deletes a package along with others that have the same dependencies.
func deleted(t *testing.T, in struct {
	Package string
	// Generated dependencies, with their dependents.
	Dependencies   map[string][]string
	DeletionPolicy corev1alpha1.DeletionPolicy
}, want *conformance.Expectation,
) {
	c := newCluster(t)
	for name, dependents := range in.Dependencies {
		c.generate(name, dependents...)
	}
	held, gone, left, required := []string{}, []string{}, []string{}, map[string][]string{}
	for _, i := range dependencies.Holders(c.surveyOf("team").Installed, resolver.Instance{Namespace: "team", Name: in.Package}) {
		held = append(held, i.Name)
	}
	if len(held) == 0 {
		c.teardown(in.Package, in.DeletionPolicy)
	}
	for name := range in.Dependencies {
		if pkg := c.get(name); pkg == nil {
			gone = append(gone, name)
		} else if required[name] = requiredBy(pkg); len(required[name]) == 0 {
			left = append(left, name)
		}
	}
	want.Is("held", held)
	want.Set("deleted", gone)
	want.Set("orphaned", left)
	want.Has("requiredBy", required)
}

// owned installs packages one after the other, with their missing dependencies.
func owned(t *testing.T, in struct {
	Parents    []string
	Dependency string
	// Packages are dependencies by package, if these have dependencies in turn.
	Packages map[string][]string
}, want *conformance.Expectation,
) {
	p := newScript(t)
	for _, parent := range in.Parents {
		p.offered[parent] = map[string][]need{"1.0.0": nil}
		if in.Dependency != "" {
			p.offered[parent]["1.0.0"] = []need{{Package: in.Dependency}}
		}
	}
	for name, dependencies := range in.Packages {
		p.offered[name] = map[string][]need{"1.0.0": nil}
		for _, d := range dependencies {
			p.offered[name]["1.0.0"] = append(p.offered[name]["1.0.0"], need{Package: d})
		}
	}
	for _, name := range append(slices.Concat(slices.Collect(maps.Values(in.Packages))...), in.Dependency) {
		if name != "" && p.offered[name] == nil {
			p.offered[name] = map[string][]need{"1.0.0": nil}
		}
	}
	for _, parent := range in.Parents {
		p.install(parent + "@1.0.0")
	}
	of, created, by, required := map[string]string{}, []string{}, "", []string{}
	for _, pkg := range p.packages() {
		of[pkg.Name] = pkg.Spec.PackageRef.Name
	}
	owners := map[string][]string{}
	for _, pkg := range p.packages() {
		if name := of[pkg.Name]; dependencies.Generated(&pkg) {
			created, required = append(created, name), requiredBy(&pkg)
			by = strings.TrimSuffix(pkg.Name, "-"+name)
			for _, dependent := range required {
				owners[name] = append(owners[name], of[dependent])
			}
		}
	}
	want.Is("createdBy", by)
	want.Is("createdCount", len(created))
	want.Set("created", created)
	want.Set("requiredBy", required)
	want.Has("owners", owners)
}

// need is a dependency of a version in a catalogue.
type need struct{ Package, Constraint string }

// script installs and changes packages of users, one after the other.
type script struct {
	*play
	offered map[string]map[string][]need
}

func newScript(t *testing.T) *script {
	t.Helper()
	return &script{newPlay(t, jointneeds.Set{}, 0), map[string]map[string][]need{}}
}

// install installs "name@version", or another version of an installed package.
func (p *script) install(all ...string) {
	p.t.Helper()
	var releases []jointneeds.Release
	for name, versions := range p.offered {
		for version, needs := range versions {
			r := jointneeds.Release{Package: name, Version: version}
			for _, n := range needs {
				on := corev1alpha1.DependencyPackage{Name: n.Package, VersionSelection: corev1alpha1.VersionSelection{Version: ranged(n.Constraint)}}
				r.Needs = append(r.Needs, corev1alpha1.Dependency{Name: n.Package, Package: &on})
			}
			releases = append(releases, r)
		}
	}
	p.release(releases)
	for _, text := range all {
		name, version, _ := strings.Cut(text, "@")
		ref := &corev1alpha1.PackageReference{Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: version}}
		if pkg := p.get(name); pkg != nil {
			pkg.Spec.PackageRef = ref
			pkg.Generation++
			p.must(p.server.Update(p.t.Context(), pkg))
			continue
		}
		p.create(name, ref)
	}
	p.rest()
}

// ranged translates ranges that rows give in words.
func ranged(text string) string {
	if rest, ok := strings.CutPrefix(text, "other than "); ok {
		return "!=" + rest
	}
	if rest, ok := strings.CutPrefix(text, "accepts "); ok {
		low, high, _ := strings.Cut(rest, " and not ")
		return ">=" + low + ", <" + high
	}
	return text
}

// names are one, or several.
type names []string

func (n *names) UnmarshalJSON(data []byte) error {
	*n = make(names, 1)
	if json.Unmarshal(data, &(*n)[0]) == nil {
		return nil
	}
	return json.Unmarshal(data, (*[]string)(n))
}

var versionText = regexp.MustCompile(`v?\d+\.\d+\.\d+[-.\w]*`)

// scripted installs and updates packages. For a package without a catalogue, the versions that the
// ranges name are offered.
func scripted(t *testing.T, in struct {
	Catalogue map[string]map[string][]need
	Steps     []struct{ Install, Update names }
	Options   struct{ Upgrades, Downgrades *bool }
}, want *conformance.Expectation,
) {
	p := newScript(t)
	p.offered = maps.Clone(in.Catalogue)
	for _, versions := range in.Catalogue {
		for _, n := range slices.Concat(slices.Collect(maps.Values(versions))...) {
			if in.Catalogue[n.Package] != nil {
				continue
			}
			if p.offered[n.Package] == nil {
				p.offered[n.Package] = map[string][]need{}
			}
			for _, version := range versionText.FindAllString(n.Constraint, -1) {
				p.offered[n.Package][version] = nil
			}
			if strings.HasPrefix(n.Constraint, "sha256:") {
				want.Otherwise(conformance.DigestsOfDependencies)
			}
		}
	}
	after, healthy, allHealthy, allResolved := []map[string]string{}, map[string]bool{}, true, true
	for _, step := range in.Steps {
		p.install(append(step.Install, step.Update...)...)
		is := p.versions()
		is["resolved"] = "True"
		for _, pkg := range p.packages() {
			if dependencies.Unsatisfied(&pkg) {
				is["resolved"], allResolved = "False", false
			}
		}
		after = append(after, is)
	}
	for _, pkg := range p.packages() {
		name := pkg.Spec.PackageRef.Name
		healthy[name] = conditions.IsTrueFor(pkg.Status.Conditions, corev1alpha1.ConditionAvailable, pkg.Generation)
		allHealthy = allHealthy && healthy[name]
	}
	switch raised := in.Options.Upgrades; {
	case raised != nil && !*raised:
		want.Otherwise(conformance.RaisedTogether)
	case !allResolved:
		want.Otherwise(conformance.NoPartOfASet)
	}
	want.Has("afterEachStep", after, p.log)
	want.Has("healthy", healthy)
	want.Is("allHealthy", allHealthy)
}

// woken offers a version to packages that follow lower ones.
func woken(t *testing.T, in struct {
	Event struct {
		RefName, Version, Namespace string
		Global                      bool
	}
	Installs []struct {
		Name, RefName, Constraints, Namespace string
		Prereleases                           *corev1alpha1.Prereleases
	}
}, want *conformance.Expectation,
) {
	c := newCluster(t)
	enqueued := []string{}
	c.enqueue = func(key types.NamespacedName) { enqueued = append(enqueued, key.Name) }
	for _, i := range in.Installs {
		pkg := &corev1alpha1.Package{}
		pkg.Namespace, pkg.Name = cmp.Or(i.Namespace, "team"), i.Name
		pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: i.RefName, VersionSelection: corev1alpha1.VersionSelection{Version: i.Constraints, Prereleases: i.Prereleases}}
		pkg.Status.LastAttempted = &corev1alpha1.AttemptedVersion{PackageName: i.RefName, Version: "0.0.0"}
		conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionResolved, true, corev1alpha1.ReasonResolved, "")
		c.must(c.server.Create(t.Context(), pkg))
	}
	scope := corev1alpha1.ScopeNamespaced
	if in.Event.Global {
		scope = corev1alpha1.ScopeCluster
	}
	available := scope.NewAvailablePackage()
	if scope == corev1alpha1.ScopeNamespaced {
		available.SetNamespace(cmp.Or(in.Event.Namespace, "team"))
	}
	*available.AvailableSpec() = corev1alpha1.AvailablePackageSpec{PackageName: in.Event.RefName, Versions: []corev1alpha1.AvailableVersion{{Version: in.Event.Version}}}
	c.followers.OffersChanged(t.Context(), nil, available)
	want.Set("enqueued", enqueued)
}

// gatedDowngrade checks the version chosen for a package that already has one.
func gatedDowngrade(t *testing.T, in struct {
	Available                         []string
	Constraints, LastAttemptedVersion string
	Downgradable                      bool
	Prereleases                       *corev1alpha1.Prereleases
}, want *conformance.Expectation,
) {
	p := newScript(t)
	p.offered["shop"] = map[string][]need{}
	for _, version := range in.Available {
		p.offered["shop"][version] = nil
	}
	p.install() // the offers
	p.catalogue.WasAvailable = func(context.Context, resolver.Instance) bool { return true }
	pkg := newPackage()
	pkg.Spec.Image, pkg.ResourceVersion = "", ""
	pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: "shop", VersionSelection: corev1alpha1.VersionSelection{Version: in.Constraints, Prereleases: in.Prereleases}}
	if in.Downgradable {
		pkg.Annotations = map[string]string{offers.DowngradableAnnotation: ""}
	}
	if in.LastAttemptedVersion != "" {
		pkg.Status.LastAttempted = &corev1alpha1.AttemptedVersion{PackageName: "shop", Version: in.LastAttemptedVersion}
	}
	status := pkg.Status
	p.must(p.server.Create(t.Context(), pkg))
	pkg.Status = status
	s := p.of(pkg)
	s.environment = env
	p.must(s.choose(t.Context()))
	chosen, attempted, message := s.choice.Chosen(), "", s.choice.Message
	named := strings.TrimPrefix(versionText.FindString(message), "v")
	if !chosen && s.choice.Reason != corev1alpha1.ReasonDowngradeRefused {
		named = ""
	}
	if last := pkg.Status.LastAttempted; last != nil {
		attempted = last.Version
	}
	want.Is("allowed", chosen, message)
	want.Is("statusVersion", named, message)
	want.Is("lastAttemptedVersion", attempted, message)
	want.Is("workloadTouched", chosen, message)
}

// cluster is an API server with Packages in the namespace team, and a controller whose cache has
// all of them.
type cluster struct {
	*Reconciler
	t      *testing.T
	server client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return newClusterWith(t, func(*fake.ClientBuilder) {})
}

func newClusterWith(t *testing.T, change func(*fake.ClientBuilder)) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, index := range indexes() {
		builder.WithIndex(index.Of, index.Field, index.Values)
	}
	change(builder)
	c := &cluster{t: t, server: builder.Build()}
	c.Reconciler, _ = newReconciler(t)
	c.Client = c.server
	return c
}

func (c *cluster) get(name string) *corev1alpha1.Package {
	pkg := &corev1alpha1.Package{}
	if err := c.server.Get(c.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, pkg); client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return pkg
}

// generate creates a package that was installed for others, which exist afterwards, too, and record
// it.
func (c *cluster) generate(name string, dependents ...string) {
	c.t.Helper()
	pkg := &corev1alpha1.Package{}
	pkg.Namespace, pkg.Name = "team", name
	pkg.Labels = map[string]string{corev1alpha1.GeneratedLabel: "true"}
	pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: name}
	pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{PackageName: name}
	entry := corev1alpha1.DependencyStatus{PackageRef: resolver.Instance{Namespace: "team", Name: name}.Reference()}
	entry.Name, entry.Package = name[strings.LastIndex(name, "-")+1:], &corev1alpha1.DependencyPackage{Name: name}
	for _, by := range dependents {
		dependencies.Require(pkg, []resolver.Need{{Dependent: resolver.Instance{Namespace: "team", Name: by}, Dependency: entry.Dependency}})
		if parent := c.get(by); parent != nil {
			parent.Status.Dependencies = append(parent.Status.Dependencies, entry)
			c.must(c.server.Update(c.t.Context(), parent))
			continue
		}
		parent := newPackage()
		parent.Name, parent.UID, parent.ResourceVersion, parent.Status.Dependencies = by, "", "", []corev1alpha1.DependencyStatus{entry}
		c.must(c.server.Create(c.t.Context(), parent))
	}
	c.must(c.server.Create(c.t.Context(), pkg))
}

// unmark takes the label of a dependent off.
func (c *cluster) unmark(name, dependent string) {
	c.t.Helper()
	pkg := c.get(name)
	delete(pkg.Labels, corev1alpha1.RequiredByLabelPrefix+dependent)
	c.must(c.server.Update(c.t.Context(), pkg))
}

func (c *cluster) surveyOf(namespace string) dependencies.Known {
	c.t.Helper()
	k, err := c.ledger.Survey(c.t.Context(), namespace)
	c.must(err)
	return k
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// teardown ends the deletion of a package whose own objects were removed.
func (c *cluster) teardown(name string, policy corev1alpha1.DeletionPolicy) {
	c.t.Helper()
	pkg := c.get(name)
	pkg.Spec.Dependencies = &corev1alpha1.PackageDependencies{DeletionPolicy: policy}
	_, err := c.of(pkg).releaseAll(c.t.Context())
	c.must(err)
}

// requiredBy returns the names in the labels of a package.
func requiredBy(pkg *corev1alpha1.Package) []string {
	names := []string{}
	for label := range pkg.Labels {
		if dependencies.IsRequiredBy(label) {
			names = append(names, label[len(corev1alpha1.RequiredByLabelPrefix):])
		}
	}
	slices.Sort(names)
	return names
}
