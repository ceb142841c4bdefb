package resolver_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/test/require"
)

// offer parses "name version: dependency range; other?". A ? marks an optional dependency, "=name"
// gives the package of a handle.
func offer(version string, deps ...string) resolver.Offer {
	return resolver.Offer{Candidate: versions.Candidate{Version: version}, Dependencies: needs(deps...)}
}

// needs parses "handle[?][=package] range".
func needs(texts ...string) (deps []corev1alpha1.Dependency) {
	for _, text := range texts {
		handle, want, _ := strings.Cut(text, " ")
		handle, name, ok := strings.Cut(handle, "=")
		d := corev1alpha1.Dependency{Name: strings.TrimSuffix(handle, "?"), Optional: strings.HasSuffix(handle, "?")}
		if !ok {
			name = d.Name
		}
		d.Package = &corev1alpha1.DependencyPackage{Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: want}}
		deps = append(deps, d)
	}
	return deps
}

func shop(deps ...string) resolver.Root {
	return resolver.Root{Instance: resolver.Instance{Namespace: "team", Name: "shop"}, Package: "shop", Version: "1.0.0", Dependencies: needs(deps...)}
}

// platform is a ClusterPackage.
func platform(deps ...string) resolver.Root {
	return resolver.Root{Instance: resolver.Instance{Name: "platform"}, Package: "platform", Version: "1.0.0", Dependencies: needs(deps...)}
}

// once is a version that is unique in the cluster.
func once(version string) resolver.Offer {
	o := offer(version)
	o.Unique = corev1alpha1.UniqueScopeCluster
	return o
}

func printed(plan resolver.Plan) string {
	var b strings.Builder
	for _, s := range plan.Steps {
		verb := "change"
		if s.Create {
			verb = "create"
		}
		var dependents []resolver.Instance
		for _, n := range s.Needs {
			dependents = append(dependents, n.Dependent)
		}
		fmt.Fprintf(&b, "%s %s: %s %s for %v\n", verb, s.Instance, s.Package, s.Version, dependents)
	}

	for _, r := range plan.Results {
		fmt.Fprintf(&b, "%s: %s %s\n", r.Instance, r.Reason, r.Message)
		for _, o := range r.Outcomes {
			fmt.Fprintf(&b, "  %s %v %s: %s\n", o.Dependency.Name, o.Satisfied, o.Reason, o.Message)
		}
	}

	return b.String()
}

func at(namespace, name, of, version string, change ...func(*resolver.Installed)) resolver.Installed {
	i := resolver.Installed{Instance: resolver.Instance{Namespace: namespace, Name: name}, Package: of, Version: version, Available: true}
	for _, c := range change {
		c(&i)
	}
	return i
}

func changeable(i *resolver.Installed) { i.Changeable, i.Generated = true, true }
func unique(i *resolver.Installed)     { i.Unique = corev1alpha1.UniqueScopeCluster }
func heedful(i *resolver.Installed)    { i.AllDependents = true }
func deleting(i *resolver.Installed)   { i.Deleting = true }

func requires(to resolver.Instance, texts ...string) func(*resolver.Installed) {
	return func(i *resolver.Installed) {
		for _, d := range needs(texts...) {
			i.Requirements = append(i.Requirements, resolver.Requirement{Dependency: d, Satisfier: &to})
		}
	}
}

func team(name string) resolver.Instance { return resolver.Instance{Namespace: "team", Name: name} }

// offers has each package in 1.0.0, 2.0.0 and 3.0.0 without dependencies, except for the given
// ones.
func offers(names string, given resolver.Offers) resolver.Offers {
	all := resolver.Offers{}
	for name := range strings.FieldsSeq(names) {
		all[name] = []resolver.Offer{offer("1.0.0"), offer("2.0.0"), offer("3.0.0")}
	}
	maps.Copy(all, given)
	return all
}

func TestSolve(t *testing.T) {
	t.Parallel()
	cases := []struct {
		reason    string
		roots     []resolver.Root
		catalogue resolver.Offers
		installed []resolver.Installed
		want      []string // parts of the plan
		not       string
	}{
		{"the highest version is created", []resolver.Root{shop("db <3")}, offers("db", nil), nil,
			[]string{"create Package team/shop-db: db 2.0.0", "WaitingForDependencies Waiting for db."}, ""},
		{"dependencies come first", []resolver.Root{shop("orm")}, offers("db", resolver.Offers{"orm": {offer("1.0.0", "db >=1")}}), nil,
			[]string{"create Package team/shop-orm-db: db 3.0.0 for [Package team/shop-orm]\ncreate Package team/shop-orm: orm 1.0.0 for [Package team/shop]"}, ""},
		{"a diamond shares one", []resolver.Root{shop("a", "b")}, offers("db", resolver.Offers{"a": {offer("1.0.0", "db <3")}, "b": {offer("1.0.0", "db <2")}}), nil,
			[]string{"create Package team/shop-a-db: db 1.0.0"}, "shop.b.db"},
		{"two dependencies on one package have two", []resolver.Root{shop("old=db 1.0.0", "new=db 2.0.0")}, offers("db", nil), nil,
			[]string{"create Package team/shop-new: db 2.0.0", "create Package team/shop-old: db 1.0.0"}, ""},
		{"what others need stays, though they could be raised as well", []resolver.Root{shop("dep=orm 2.0.0")},
			offers("db", resolver.Offers{"orm": {offer("1.0.0", "db 1.0.0"), offer("2.0.0", "db 2.0.0")}, "etl": {offer("1.0.0", "db 1.0.0"), offer("2.0.0", "db 2.0.0")}}),
			[]resolver.Installed{
				at("team", "stats", "stats", "1.0.0", requires(team("stats-dep"), "dep=etl 1.0.0")),
				at("team", "shop-dep", "orm", "1.0.0", changeable, requires(team("shop-dep-db"), "db 1.0.0")),
				at("team", "stats-dep", "etl", "1.0.0", changeable, requires(team("shop-dep-db"), "db 1.0.0")),
				at("team", "shop-dep-db", "db", "1.0.0", changeable),
			},
			[]string{"VersionMismatch", "path stats → stats-dep → db"}, "change"},
		{"what a user installed is used", []resolver.Root{shop("db >=1")}, offers("db", nil), []resolver.Installed{at("team", "mine", "db", "1.0.0")},
			[]string{"db true AlreadyInstalled: It is installed as Package team/mine.", "DependenciesReady"}, "create"},
		{"and not changed", []resolver.Root{shop("db >=2")}, offers("db", nil), []resolver.Installed{at("team", "mine", "db", "1.0.0")},
			[]string{`VersionMismatch: db is installed as Package team/mine in 1.0.0, which is not within ">=2"`, "set spec.upgradePolicy.allowDependents"}, "create"},
		{"a generated one takes the lowest version above", []resolver.Root{shop("db >=1.5")}, offers("db", nil), []resolver.Installed{at("team", "shop-db", "db", "1.0.0", changeable)},
			[]string{"change Package team/shop-db: db 2.0.0 for [Package team/shop]"}, ""},
		{"and never a lower one", []resolver.Root{shop("db <3")}, offers("db", nil), []resolver.Installed{at("team", "shop-db", "db", "3.0.0", changeable)},
			[]string{"VersionMismatch", "it is never downgraded automatically"}, "change"},
		{"the ranges of all parents count, with their paths", []resolver.Root{shop("db >=2")}, offers("db", nil), []resolver.Installed{
			at("team", "stats-orm-db", "db", "1.0.0", changeable), at("team", "stats-orm", "orm", "1.0.0", requires(team("stats-orm-db"), "db <2")),
			at("team", "stats", "stats", "1.0.0", requires(team("stats-orm"), "orm")),
		}, []string{`No version of db fits all its dependents: ">=2" (by Package team/shop) and "<2" (by Package team/stats-orm, path stats → stats-orm → db)`, "Change one of these ranges"}, "change"},
		{"a ClusterPackage serves namespaces", []resolver.Root{shop("db")}, offers("db", nil), []resolver.Installed{at("", "db", "db", "1.0.0")},
			[]string{"It is installed as ClusterPackage db."}, "create"},
		{"a package of another namespace does not", []resolver.Root{shop("db")}, offers("db", nil), []resolver.Installed{at("other", "db", "db", "1.0.0")},
			[]string{"create Package team/shop-db: db 3.0.0"}, ""},
		{"regardless of the uniqueness in its image", []resolver.Root{shop("db")}, offers("db", nil), []resolver.Installed{at("other", "db", "db", "1.0.0", unique)},
			[]string{"create Package team/shop-db: db 3.0.0"}, "other"},
		{"nor does it satisfy a ClusterPackage", []resolver.Root{platform("db <3")}, offers("db", nil), []resolver.Installed{at("other", "db", "db", "9.9.9", unique)},
			[]string{"create ClusterPackage platform-db: db 2.0.0"}, "other"},
		{"or take its place", []resolver.Root{platform("db")}, resolver.Offers{"db": {once("1.0.0")}}, []resolver.Installed{at("other", "db", "db", "1.0.0", unique)},
			[]string{"create ClusterPackage platform-db: db 1.0.0"}, "other"},
		{"a ClusterPackage is one of its kind", []resolver.Root{platform("old=db 1.0.0", "new=db 2.0.0")},
			resolver.Offers{"db": {once("1.0.0"), once("2.0.0")}}, nil, []string{"db can be installed only once in its scope."}, "create"},
		{"a satisfier that an earlier manager recorded elsewhere is ignored", []resolver.Root{shop("db")}, offers("db", nil), []resolver.Installed{
			at("other", "db", "db", "1.0.0", unique, changeable), at("team", "shop", "shop", "1.0.0", requires(resolver.Instance{Namespace: "other", Name: "db"}, "db")),
		}, []string{"create Package team/shop-db: db 3.0.0"}, "other"},
		{"a Package raises no ClusterPackage", []resolver.Root{shop("db >=3")}, offers("db", nil), []resolver.Installed{at("", "infra-db", "db", "1.0.0", changeable)},
			[]string{`VersionMismatch: db is installed as ClusterPackage infra-db in 1.0.0, which is not within ">=3", and Packages in namespaces cannot change it`}, "change ClusterPackage"},
		{"unless that heeds all", []resolver.Root{shop("db >=3")}, offers("db", nil), []resolver.Installed{at("", "infra-db", "db", "1.0.0", changeable, heedful)},
			[]string{"change ClusterPackage infra-db: db 3.0.0"}, ""},
		{"and consents to changes", []resolver.Root{shop("db >=3")}, offers("db", nil), []resolver.Installed{at("", "db", "db", "1.0.0", heedful)},
			[]string{"VersionMismatch", "set spec.upgradePolicy.allowDependents"}, "change"},
		{"nor one of another namespace", []resolver.Root{shop("db >=3")}, offers("db", nil), []resolver.Installed{at("other", "db", "db", "1.0.0", changeable, unique)},
			[]string{"create Package team/shop-db: db 3.0.0"}, "change"},
		{"a ClusterPackage raises one", []resolver.Root{platform("db >=3")}, offers("db", nil), []resolver.Installed{at("", "infra-db", "db", "1.0.0", changeable)},
			[]string{"change ClusterPackage infra-db: db 3.0.0"}, ""},
		{"with any range of a Package", []resolver.Root{platform("db >=2")}, offers("db", nil), []resolver.Installed{
			at("", "infra-db", "db", "1.0.0", changeable), at("evil", "x", "x", "1.0.0", requires(resolver.Instance{Name: "infra-db"}, "db <2")),
		}, []string{"change ClusterPackage infra-db: db 2.0.0 for [ClusterPackage platform]"}, "evil"},
		{"unless it heeds all", []resolver.Root{platform("db >=2")}, offers("db", nil), []resolver.Installed{
			at("", "infra-db", "db", "1.0.0", changeable, heedful), at("team", "x", "x", "1.0.0", requires(resolver.Instance{Name: "infra-db"}, "db <2")),
		}, []string{`No version of db fits all its dependents: ">=2" (by ClusterPackage platform) and "<2" (by Package team/x)`}, "change"},
		{"the range of a ClusterPackage counts", []resolver.Root{platform("db >=2")}, offers("db", nil), []resolver.Installed{
			at("", "infra-db", "db", "1.0.0", changeable), at("", "infra", "infra", "1.0.0", requires(resolver.Instance{Name: "infra-db"}, "db <2")),
		}, []string{`"<2" (by ClusterPackage infra) and ">=2" (by ClusterPackage platform)`}, "change"},
		{"a package that is being deleted is waited for", []resolver.Root{shop("db")}, offers("db", nil), []resolver.Installed{at("team", "db", "db", "1.0.0", deleting)},
			[]string{"NotAvailable: Package team/db is being deleted."}, "create"},
		{"a name that is taken gets a hash", []resolver.Root{shop("db")}, offers("db", nil), []resolver.Installed{at("team", "shop-db", "other", "1.0.0")},
			[]string{"create Package team/shop-db-"}, ""},
		{"an optional one does not fail the resolution", []resolver.Root{shop("db", "ghost?")}, offers("db", nil), nil,
			[]string{"create Package team/shop-db", "ghost false UnknownPackage: ghost is not installed, and no repository"}, "DependenciesUnsatisfied"},
		{"an optional one changes no other choice", []resolver.Root{shop("db", "log?")}, offers("db", resolver.Offers{"log": {offer("1.0.0", "db <3")}}), nil,
			[]string{"create Package team/shop-db: db 3.0.0", "log false VersionMismatch"}, "shop-log"},
		{"a root that fails leaves others alone", []resolver.Root{shop("ghost"), {Instance: team("web"), Package: "web", Dependencies: needs("db")}}, offers("db", nil), nil,
			[]string{"create Package team/web-db", "Package team/shop: DependenciesUnsatisfied ghost: ghost is not installed"}, ""},
		{"satisfied roots precede new ones", []resolver.Root{shop("db >=2"), {Instance: team("web"), Package: "web", Dependencies: needs("db <2")}}, offers("db", nil),
			[]resolver.Installed{at("team", "web-db", "db", "1.0.0", changeable)}, []string{"db false VersionMismatch", "db true InstalledByThisPackage"}, "change"},
		{"a cycle is named", []resolver.Root{shop("a")}, resolver.Offers{"a": {offer("1.0.0", "b")}, "b": {offer("1.0.0", "c")}, "c": {offer("1.0.0", "a")}}, nil,
			[]string{"DependencyCycle a: a → b → c → a: each would wait for the next."}, "create"},
		{"a cycle of installed packages that stay is allowed, and hides no other", []resolver.Root{shop("a", "c >=2")}, offers("", resolver.Offers{"c": {offer("2.0.0", "b")}}),
			[]resolver.Installed{
				at("team", "a", "a", "1.0.0", requires(team("b"), "b"), requires(team("c"), "c")), at("team", "b", "b", "1.0.0", requires(team("a"), "a")),
				at("team", "c", "c", "1.0.0", changeable),
			}, []string{"DependencyCycle c: a → c → b → a"}, "change"},
		{"a cycle of installed packages that stay is none", []resolver.Root{shop("a")}, nil,
			[]resolver.Installed{at("team", "a", "a", "1.0.0", requires(team("b"), "b")), at("team", "b", "b", "1.0.0", requires(team("a"), "a"))}, []string{"DependenciesReady"}, "create"},
		{"a version without a cycle is a way out", []resolver.Root{shop("a")}, resolver.Offers{"a": {offer("2.0.0", "b"), offer("1.0.0")}, "b": {offer("1.0.0", "a")}}, nil,
			[]string{"a 1.0.0"}, "a 2.0.0"},
		{"a package that depends on itself in two ways", []resolver.Root{shop("a")}, resolver.Offers{"a": {offer("1.0.0", "x=b", "y=b")}, "b": {offer("1.0.0", "x=a", "y=a")}}, nil,
			[]string{"DependencyCycle"}, "create"},
		{"an unknown package below is named with its path", []resolver.Root{shop("orm")}, resolver.Offers{"orm": {offer("1.0.0", "ghost")}}, nil,
			[]string{"orm false UnknownPackage: orm 1.0.0 depends on ghost (path shop → orm → ghost): ghost is not installed"}, "create"},
		{"garbage is refused", []resolver.Root{shop("db latest", "=")}, resolver.Offers{"db": {offer("x"), offer(""), offer("1.0.0", "=")}, "": {offer("1")}}, nil,
			[]string{"The range of db is invalid", "It names neither a package nor an API."}, "create"},
	}

	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			got := printed(resolver.Solve(resolver.Input{Roots: c.roots, Catalogue: c.catalogue, Installed: c.installed}))
			for _, part := range c.want {
				require.Contains(t, got, part)
			}
			if c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("%q is in\n%s", c.not, got)
			}
		})
	}
}

func TestRetracted(t *testing.T) {
	t.Parallel()
	retracted := offer("2.0.0")
	retracted.Retracted = "loses data"
	catalogue := resolver.Offers{"db": {offer("1.0.0"), retracted}}
	for want, text := range map[string]string{"db 1.0.0": "db >=1", "db 2.0.0": "db 2.0.0"} {
		require.Contains(t, printed(resolver.Solve(resolver.Input{Roots: []resolver.Root{shop(text)}, Catalogue: catalogue})), want, text)
	}

	installed := []resolver.Installed{at("team", "db", "db", "2.0.0")}
	require.Contains(t, printed(resolver.Solve(resolver.Input{Roots: []resolver.Root{shop("db >=1")}, Catalogue: catalogue, Installed: installed})), "db true")
}

func TestPrereleases(t *testing.T) {
	t.Parallel()
	catalogue := resolver.Offers{"db": {offer("1.0.0"), offer("2.0.0-beta.1"), offer("2.0.0-rc.1")}}
	for _, tc := range []struct {
		reason, want string
		prereleases  *corev1alpha1.Prereleases
		chosen       string
	}{
		{"none by default", ">=1.0.0", nil, "1.0.0"},
		{"one that is named", "2.0.0-beta.1", nil, "2.0.0-beta.1"},
		{"all", ">=1.0.0", &corev1alpha1.Prereleases{}, "2.0.0-rc.1"},
		{"some", ">=1.0.0", &corev1alpha1.Prereleases{Identifiers: []string{"beta"}}, "2.0.0-beta.1"},
	} {
		root := shop("db " + tc.want)
		root.Dependencies[0].Package.Prereleases = tc.prereleases
		plan := resolver.Solve(resolver.Input{Roots: []resolver.Root{root}, Catalogue: catalogue})
		if len(plan.Steps) != 1 || plan.Steps[0].Version != tc.chosen {
			t.Errorf("%s: want %s, got\n%s", tc.reason, tc.chosen, printed(plan))
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	cluster := offer("1.0.0")
	cluster.Scopes = []corev1alpha1.Scope{corev1alpha1.ScopeCluster}
	got := printed(resolver.Solve(resolver.Input{Roots: []resolver.Root{shop("db")}, Catalogue: resolver.Offers{"db": {cluster}}}))
	if !strings.Contains(got, "An administrator can do this: kubectl package install db --cluster") || strings.Contains(got, "create") {
		t.Error(got)
	}

	root := shop("db")
	root.Instance = resolver.Instance{Name: "shop"}
	got = printed(resolver.Solve(resolver.Input{Roots: []resolver.Root{root}, Catalogue: resolver.Offers{"db": {cluster}}}))
	require.Contains(t, got, "create ClusterPackage shop-db: db 1.0.0")
}

// pigeons are n packages that each need one of n-1 holes for itself.
func pigeons(n int) resolver.Input {
	in := resolver.Input{Roots: []resolver.Root{shop()}}
	offers := resolver.Offers{}
	for p := range n {
		name := fmt.Sprintf("pigeon%d", p)
		in.Roots[0].Dependencies = append(in.Roots[0].Dependencies, needs(name)...)
		for h := range n - 1 {
			offers[name] = append(offers[name], offer(fmt.Sprintf("%d.0.0", h), fmt.Sprintf("hole%d =%d.0.0", h, p)))
			offers[fmt.Sprintf("hole%d", h)] = append(offers[fmt.Sprintf("hole%d", h)], offer(fmt.Sprintf("%d.0.0", p)))
		}
	}
	in.Catalogue = offers
	return in
}

func TestPigeonhole(t *testing.T) {
	t.Parallel()
	require.Contains(t, printed(resolver.Solve(pigeons(6))), "No version of hole0 fits all its dependents")
	got := resolver.Solve(pigeons(20)).Results[0]
	if got.Reason != corev1alpha1.ReasonResolutionLimit || !strings.Contains(got.Message, "reached the limit of 1000000 steps. Narrow ranges") {
		t.Errorf("%+v", got)
	}
}

// All work takes steps: reading offers and installed packages, the search for changeable ones, and
// explanations. All calls of one resolution share its steps, and a root in a namespace has fewer.
func TestAllWorkIsCounted(t *testing.T) {
	t.Parallel()
	limited := func(plan resolver.Plan) bool { return plan.Results[0].Reason == corev1alpha1.ReasonResolutionLimit }
	in := wide(2_000, 20)
	in.Roots[0].Dependencies = needs("wide")
	if plan := resolver.Solve(in); !limited(withSteps(in, 40_000)) || limited(withSteps(in, 80_000)) || limited(plan) {
		t.Errorf("2,000 versions of 20 dependencies: %s", printed(plan))
	}

	in.Installed[0].Changeable = false
	if limited(withSteps(in, 40_000)) {
		t.Error("if no package can change, no version is searched")
	}

	many := resolver.Input{Roots: []resolver.Root{shop("db")}, Catalogue: offers("db", nil)}
	for k := range 2_000 {
		many.Installed = append(many.Installed, at("team", fmt.Sprintf("p%d", k), "p", "1.0.0"))
	}

	if !limited(withSteps(many, 1_000)) || limited(withSteps(many, 10_000)) {
		t.Error("installed packages are counted")
	}

	hard := pigeons(20)
	r := resolver.New(hard)
	for range 4 {
		r.Solve(hard.Roots)
	}

	if plan := r.Solve([]resolver.Root{shop("hole0")}); !limited(plan) {
		t.Errorf("no steps are left: %s", printed(plan))
	}

	in = wide(60_000, 20)
	in.Roots[0].Dependencies = needs("wide")
	if !limited(resolver.Solve(in)) {
		t.Error("a Package takes more than its share")
	}

	in.Roots[0].Namespace, in.Installed[0].Namespace = "", ""
	if plan := resolver.Solve(in); limited(plan) {
		t.Errorf("a ClusterPackage has more: %s", printed(plan))
	}
}

// A requirement without a fitting version is explained once, regardless of how many roots have it and
// how many searches look for the cause of a conflict. A long range takes as many steps as it has
// bytes, because parsing it takes a millisecond.
func TestRequirementsAreExplainedOnce(t *testing.T) {
	t.Parallel()
	long := ">=2" + strings.Repeat(" ", 4000) + ", <3"
	var in resolver.Input
	var versions []resolver.Offer
	for k := range 1000 {
		versions = append(versions, offer(fmt.Sprintf("1.%d.0", k)))
	}

	in.Catalogue = resolver.Offers{"db": versions, "log": {offer("1.0.0")}}
	for k := range 24 {
		root := shop("db "+long, "log "+long)
		root.Name = fmt.Sprintf("shop-%d", k)
		in.Roots = append(in.Roots, root)
	}

	for _, r := range withSteps(in, 350_000).Results {
		if r.Reason != corev1alpha1.ReasonDependenciesUnsatisfied {
			t.Errorf("%s: %s: %s", r.Name, r.Reason, r.Message)
		}
	}

	in.Roots, in.Catalogue = in.Roots[:1], nil
	if r := withSteps(in, 3_000).Results[0]; r.Reason != corev1alpha1.ReasonResolutionLimit {
		t.Errorf("two ranges of 4,000 bytes within 3,000 steps: %s: %s", r.Reason, r.Message)
	}
}

func withSteps(in resolver.Input, steps int) resolver.Plan {
	in.Steps = steps
	return resolver.Solve(in)
}

// Names are stable, valid as labels, and distinct from other packages' names.
func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 60)
	for _, tc := range []struct{ reason, got, want string }{
		{"dependent and dependency", resolver.Child(team("shop"), "db").String(), "Package team/shop-db"},
		{"of a ClusterPackage", resolver.Child(resolver.Instance{Name: "shop"}, "db").String(), "ClusterPackage shop-db"},
		{"at the limit", resolver.Child(team(long), "db").Name, long + "-db"},
		{"beyond it", resolver.Child(team(long), "dbs").Name, strings.Repeat("a", 52) + "-d58e283376"},
		{"label of a dependent", resolver.LabelOf(team("shop"), "team"), "shop"},
		{"of one in another namespace", resolver.LabelOf(team("shop"), "other"), "shop-ca8b22d0db"},
	} {
		require.Equal(t, tc.want, tc.got, tc.reason)
	}

	seen := map[string]bool{}
	for _, name := range []string{"shop", long, long + "b", long + ".x", strings.Repeat("b", 253)} {
		for _, namespace := range []string{"", "other", "team", long + "c"} {
			label := resolver.LabelOf(resolver.Instance{Namespace: namespace, Name: name}, "team")
			if problems := validation.IsQualifiedName("example.com/" + label); len(problems) > 0 || seen[label] {
				t.Errorf("%s of %s: %v, seen %v", label, name, problems, seen[label])
			}
			seen[label] = true
		}
	}
}

// Two packages that can only move together do so even if another root, of any name, has no
// solution.
func TestTogetherBesideHopeless(t *testing.T) {
	t.Parallel()
	recorded := func(i resolver.Installed, to string, texts ...string) resolver.Installed {
		for _, d := range needs(texts...) {
			i.Requirements = append(i.Requirements, resolver.Requirement{Dependency: d, Satisfier: &resolver.Instance{Namespace: "team", Name: to}})
		}
		return i
	}

	for _, hopeless := range []string{"a", "m", "z"} {
		in := resolver.Input{
			Catalogue: resolver.Offers{"db": {offer("1.0.0"), offer("2.0.0")}},
			Installed: []resolver.Installed{
				at("team", "shop-db", "db", "1.0.0", changeable),
				recorded(at("team", "shop", "shop", "1.0.0"), "shop-db", "db =1.0.0"), recorded(at("team", "stats", "stats", "1.0.0"), "shop-db", "db =1.0.0"),
			},
		}
		for name, want := range map[string]string{"shop": "db =2.0.0", "stats": "db =2.0.0", hopeless: "db =3.0.0"} {
			root := shop(want)
			root.Name, root.Package = name, name
			in.Roots = append(in.Roots, root)
		}
		plan := resolver.Solve(in)
		for _, r := range plan.Results {
			if fails(r) != (r.Name == hopeless) {
				t.Errorf("%s: %+v", hopeless, r)
			}
		}
		if len(plan.Steps) != 1 || plan.Steps[0].Version != "2.0.0" {
			t.Errorf("%s: %+v", hopeless, plan.Steps)
		}
	}
}

// A root that contradicts itself gets its own conflict explained, instead of advice to change the
// range of an unrelated package.
func TestOwnConflict(t *testing.T) {
	t.Parallel()
	top := at("team", "top", "top", "1.0.0")
	top.Requirements = []resolver.Requirement{{Dependency: needs("base <2")[0], Satisfier: &resolver.Instance{Namespace: "team", Name: "top-base"}}}
	dis := shop("da", "db")
	dis.Name, dis.Package = "dis", "dis"
	plan := resolver.Solve(resolver.Input{
		Roots: []resolver.Root{dis}, Installed: []resolver.Installed{top, at("team", "top-base", "base", "1.0.0", changeable)},
		Catalogue: resolver.Offers{"base": {offer("1.0.0"), offer("2.0.0")}, "da": {offer("1.0.0", "base >=2")}, "db": {offer("1.0.0", "base <2")}},
	})
	message := plan.Results[0].Message
	if strings.Contains(message, "top") || !strings.Contains(message, "path dis → da → base") || !strings.Contains(message, "path dis → db → base") {
		t.Error(message)
	}
}

var certificate = corev1alpha1.ProvidedAPI{APIVersion: "certs.example.com/v1", Kind: "Certificate"}

func provider(version string, deps ...string) resolver.Offer {
	return resolver.Offer{Candidate: versions.Candidate{Version: version, Provides: []corev1alpha1.ProvidedAPI{certificate}}, Dependencies: needs(deps...)}
}

func provides(i *resolver.Installed) { i.Provides = []corev1alpha1.ProvidedAPI{certificate} }

// A package that was installed for an API changes only to versions that provide the API.
func TestChangesKeepTheAPI(t *testing.T) {
	t.Parallel()
	catalogue := resolver.Offers{"pki": {provider("1.0.0"), offer("2.0.0"), provider("2.1.0")}}
	byAPI := func(i *resolver.Installed) { i.API = &certificate }
	for want, change := range map[string]func(*resolver.Installed){"2.0.0": func(*resolver.Installed) {}, "2.1.0": byAPI} {
		plan := resolver.Solve(resolver.Input{
			Roots: []resolver.Root{shop("pki >=2")}, Catalogue: catalogue, Installed: []resolver.Installed{at("team", "pki", "pki", "1.0.0", changeable, change)},
		})
		require.Contains(t, printed(plan), "pki "+want, want)
	}
}

func TestAPIs(t *testing.T) {
	t.Parallel()
	served := func(missing ...string) resolver.Served {
		return func(*corev1alpha1.DependencyAPI) (bool, []string) { return true, missing }
	}
	two := resolver.Offers{"certs": {provider("1.0.0")}, "pki": {provider("1.0.0")}}
	cases := []struct {
		reason    string
		also      []string // dependencies in addition to the one on the API
		catalogue resolver.Offers
		installed []resolver.Installed
		served    resolver.Served
		want, not string
	}{
		{"served", nil, two, nil, served(), "api true ApiServed: The cluster serves it.", "create"},
		{"served without fields", nil, two, nil, served("spec.key"), "FieldsMissing: certs.example.com/v1 Certificate is served without spec.key.", "create"},
		{"one package provides it", nil, resolver.Offers{"certs": {provider("1.0.0"), provider("2.0.0"), offer("3.0.0")}}, nil, nil, "create Package team/shop-api: certs 2.0.0", ""},
		{"several do", nil, two, nil, nil, "AmbiguousProvider: The packages certs and pki provide certs.example.com/v1 Certificate. Name one in spec.dependencies.overrides", "create"},
		{"several do, one of them is required anyway", []string{"pki"}, two, nil, nil, "create Package team/shop-api: pki 1.0.0", "certs 1.0.0"},
		{"several do, one of them is installed", nil, two, []resolver.Installed{at("team", "pki", "pki", "1.0.0", provides)}, nil, "api true AlreadyInstalled: It is installed as Package team/pki.", "create"},
		{"served by a package of the namespace", nil, two, []resolver.Installed{at("team", "pki", "pki", "1.0.0", provides)}, served(), "by Package team/pki", "create"},
		{"served by a ClusterPackage without a recorded owner", nil, two, []resolver.Installed{at("", "pki", "pki", "1.0.0", provides)}, served(), "api true ApiServed: The cluster serves it.", "ClusterPackage"},
		{"unless that heeds all", nil, two, []resolver.Installed{at("", "pki", "pki", "1.0.0", provides, heedful)}, served(), "by ClusterPackage pki", "create"},
		{"provided by a package of another namespace", nil, nil, []resolver.Installed{at("other", "pki", "pki", "1.0.0", provides, unique)}, nil, "UnknownPackage", "other"},
		{"none does", nil, nil, nil, nil, "UnknownPackage: The cluster does not serve certs.example.com/v1 Certificate, and no installed or offered package", "create"},
	}

	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			root := shop(c.also...)
			root.Dependencies = append(root.Dependencies, corev1alpha1.Dependency{Name: "api", API: &corev1alpha1.DependencyAPI{APIVersion: certificate.APIVersion, Kind: certificate.Kind}})
			plan := resolver.Solve(resolver.Input{Roots: []resolver.Root{root}, Catalogue: c.catalogue, Installed: c.installed, Served: c.served})
			got := printed(plan)
			if by := plan.Results[0].Outcomes[len(c.also)].Satisfier; by != nil {
				got += " by " + by.String()
			}
			if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
				t.Error(got)
			}
		})
	}
}

// TestUnloaded checks that a package that is not loaded yet has the requirements of its offer.
func TestUnloaded(t *testing.T) {
	t.Parallel()
	unloaded := func(i *resolver.Installed) { i.Unloaded, i.Available = true, false }
	got := printed(resolver.Solve(resolver.Input{
		Roots: []resolver.Root{shop("orm")}, Catalogue: offers("db", resolver.Offers{"orm": {offer("1.0.0", "db <3")}}),
		Installed: []resolver.Installed{at("team", "shop-orm", "orm", "1.0.0", changeable, unloaded)},
	}))
	if !strings.Contains(got, "create Package team/shop-orm-db: db 2.0.0") || strings.Contains(got, "change") {
		t.Error(got)
	}
}
