package dependencies

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/test/require"
)

func newPackage(change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", UID: "pkg-uid", Generation: 2}}
	for _, c := range change {
		c(pkg)
	}
	return pkg
}

func recording(entries ...corev1alpha1.DependencyStatus) *corev1alpha1.Package {
	pkg := newPackage()
	pkg.Status.Dependencies = entries
	return pkg
}

func in(name string) resolver.Instance { return resolver.Instance{Namespace: "team", Name: name} }

// requiring reads "a → b c": a, which requires b and c.
func requiring(texts ...string) (all []resolver.Installed) {
	for _, text := range texts {
		name, needs, _ := strings.Cut(text, " → ")
		i := resolver.Installed{Instance: in(name)}
		for need := range strings.FieldsSeq(needs) {
			to := in(need)
			i.Requirements = append(i.Requirements, resolver.Requirement{Satisfier: &to})
		}
		all = append(all, i)
	}
	return all
}

func needing(namespace, name, toNamespace, to string) resolver.Installed {
	return resolver.Installed{
		Instance:     resolver.Instance{Namespace: namespace, Name: name},
		Requirements: []resolver.Requirement{{Satisfier: &resolver.Instance{Namespace: toNamespace, Name: to}}},
	}
}

func TestHolders(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason    string
		installed []resolver.Installed
		of, want  string
	}{
		{"not needed by any package", requiring("a → b"), "a", ""},
		{"needed by two", requiring("c → b", "a → b"), "b", "a c"},
		{"only those that need it themselves", requiring("a → b", "b → c"), "c", "b"},
		{"named twice", requiring("a → b b"), "b", "a"},
		{"one that needs itself", requiring("a → a"), "a", ""},
		{"a package without known requirements", requiring("a → ", "b"), "b", ""},
		{"the first of a cycle", requiring("a → b", "b → a"), "a", ""},
		{"the second of a cycle", requiring("a → b", "b → a"), "b", "a"},
		{"the first of a long cycle", requiring("a → b", "b → c", "c → a"), "a", ""},
		{"the last of a long cycle", requiring("a → b", "b → c", "c → a"), "c", "b"},
		{"the first of a cycle, needed from outside", requiring("a → b", "b → a", "x → a"), "a", "x"},
		{"a Package holds no ClusterPackage", append(requiring("a → b"), needing("", "x", "", "db"), needing("team", "y", "", "db"), resolver.Installed{Instance: resolver.Instance{Name: "db"}}), "/db", "x"},
		{"unless that heeds all", []resolver.Installed{needing("team", "y", "", "db"), {Instance: resolver.Instance{Name: "db"}, AllDependents: true}}, "/db", "y"},
		{"nor a Package of another namespace", append(requiring("a → b", "b"), needing("other", "y", "team", "b")), "b", "a"},
		{"below a cycle", requiring("a → b", "b → a c"), "c", "b"},
		{"above a cycle", requiring("a → b c", "b → c", "c → b"), "a", ""},
	} {
		var names []string
		of := in(tc.of)
		if name, cluster := strings.CutPrefix(tc.of, "/"); cluster {
			of = resolver.Instance{Name: name}
		}
		for _, h := range Holders(tc.installed, of) {
			names = append(names, h.Name)
		}
		require.Equal(t, tc.want, strings.Join(names, " "), fmt.Sprintf("%s: %s waits for", tc.reason, tc.of))
	}
}

// TestHoldersEnd: for any requirements, all packages can be deleted, and without a cycle none is
// deleted before its dependents.
func TestHoldersEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		isAcyclic, left := seed%2 == 0, []resolver.Installed{}
		for k := range 7 {
			i := resolver.Installed{Instance: in(string(rune('a' + k)))}
			for n := range 7 {
				if to := in(string(rune('a' + n))); r.IntN(4) == 0 && (!isAcyclic || n > k) {
					i.Requirements = append(i.Requirements, resolver.Requirement{Satisfier: &to})
				}
			}
			left = append(left, i)
		}
		for len(left) > 0 {
			free := -1
			for k := range left {
				if len(Holders(left, left[k].Instance)) == 0 {
					free = k
				}
			}
			if free < 0 {
				t.Fatalf("seed %d: each of these waits for another: %+v", seed, left)
			}
			if by := DependentsBy(left)[left[free].Instance]; isAcyclic && len(by) > 0 {
				t.Errorf("seed %d: %s is removed before %v", seed, left[free].Instance, by)
			}
			left = append(left[:free], left[free+1:]...)
		}
	}
}

func dependencyOn(name, version string) corev1alpha1.Dependency {
	return corev1alpha1.Dependency{Name: name, Package: &corev1alpha1.DependencyPackage{
		Name: name + ".example.com", VersionSelection: corev1alpha1.VersionSelection{Version: version},
	}}
}

// entry returns an entry of a status.
func entry(name, satisfier, reason string) corev1alpha1.DependencyStatus {
	d := corev1alpha1.DependencyStatus{Dependency: dependencyOn(name, "")}
	if satisfier != "" {
		d.PackageRef = in(satisfier).Reference()
	}
	conditions.Set(&d.Conditions, 1, corev1alpha1.ConditionSatisfied, reason != corev1alpha1.ReasonVersionMismatch, reason, "")
	return d
}

func entriesText(entries []corev1alpha1.DependencyStatus) string {
	var texts []string
	for _, e := range entries {
		text := e.Name
		if e.PackageRef != nil {
			text += " by " + e.PackageRef.Name
		}
		c := meta.FindStatusCondition(e.Conditions, corev1alpha1.ConditionSatisfied)
		texts = append(texts, fmt.Sprintf("%s %s/%d", text, c.Reason, c.ObservedGeneration))
	}
	return strings.Join(texts, ", ")
}

func outcomeOf(name, satisfier, reason string) resolver.Outcome {
	o := resolver.Outcome{Dependency: dependencyOn(name, ""), Reason: reason, Message: reason + "."}
	o.Satisfied, o.Failed = reason == corev1alpha1.ReasonAlreadyInstalled, reason == corev1alpha1.ReasonVersionMismatch
	if satisfier != "" {
		at := in(satisfier)
		o.Satisfier, o.Version = &at, "1.0.0"
	}
	return o
}

func servedOf(name string) resolver.Outcome {
	return resolver.Outcome{Dependency: dependencyOn(name, ""), Satisfied: true, Reason: corev1alpha1.ReasonAPIServed}
}

func ownedBy(name string, at resolver.Instance) corev1alpha1.DependencyStatus {
	d := entry(name, "x", corev1alpha1.ReasonAPIServed)
	d.PackageRef = at.Reference()
	return d
}

func TestEntries(t *testing.T) {
	t.Parallel()
	const installed, mismatch, former = corev1alpha1.ReasonAlreadyInstalled, corev1alpha1.ReasonVersionMismatch, corev1alpha1.ReasonNoLongerRequired
	for _, tc := range []struct {
		reason   string
		before   []corev1alpha1.DependencyStatus
		outcomes []resolver.Outcome
		want     string
	}{
		{"nothing", nil, nil, ""},
		{"the first time", nil, []resolver.Outcome{outcomeOf("db", "shop-db", installed), outcomeOf("api", "", mismatch)}, "db by shop-db AlreadyInstalled/2, api VersionMismatch/2"},
		{"another package satisfies it", []corev1alpha1.DependencyStatus{entry("db", "mine", installed)}, []resolver.Outcome{outcomeOf("db", "shop-db", installed)}, "db by shop-db AlreadyInstalled/2"},
		{"it holds the last satisfying package", []corev1alpha1.DependencyStatus{entry("db", "mine", installed)}, []resolver.Outcome{outcomeOf("db", "", mismatch)}, "db by mine VersionMismatch/2"},
		{"former requirements come last, by name",
			[]corev1alpha1.DependencyStatus{entry("queue", "q", installed), entry("cache", "c", installed), entry("db", "mine", installed)},
			[]resolver.Outcome{outcomeOf("db", "mine", installed)}, "db by mine AlreadyInstalled/2, cache by c NoLongerRequired/2, queue by q NoLongerRequired/2"},
		{"one that did not hold a package is dropped", []corev1alpha1.DependencyStatus{entry("db", "", mismatch)}, nil, ""},
		{"an API is served, by the package installed for it", []corev1alpha1.DependencyStatus{entry("db", "shop-db", installed)}, []resolver.Outcome{servedOf("db")}, "db by shop-db ApiServed/2"},
		{"an API is served, and another scope's owner of it is forgotten", []corev1alpha1.DependencyStatus{ownedBy("db", resolver.Instance{Name: "platform-db"})}, []resolver.Outcome{servedOf("db")}, "db ApiServed/2"},
		{"required again", []corev1alpha1.DependencyStatus{entry("db", "mine", former)}, []resolver.Outcome{outcomeOf("db", "mine", installed)}, "db by mine AlreadyInstalled/2"},
	} {
		pkg := recording(tc.before...)
		require.Equal(t, tc.want, entriesText(entriesOf(pkg, tc.outcomes)), tc.reason)
		for _, e := range tc.before {
			if c := meta.FindStatusCondition(e.Conditions, corev1alpha1.ConditionSatisfied); c.ObservedGeneration != 1 {
				t.Errorf("%s: the recorded condition was changed", tc.reason)
			}
		}
	}
}

func TestLabelsOfDependents(t *testing.T) {
	t.Parallel()
	pkg := newPackage(func(pkg *corev1alpha1.Package) { pkg.Labels = map[string]string{"own": "kept"} })
	need := func(dependent resolver.Instance, version string) resolver.Need {
		return resolver.Need{Dependent: dependent, Dependency: dependencyOn("db", version)}
	}
	cluster, elsewhere := resolver.Instance{Name: "base"}, resolver.Instance{Namespace: "other", Name: "blog"}
	Require(pkg, []resolver.Need{need(in("web"), ">=1"), need(cluster, ""), need(elsewhere, "<3"), need(in("web"), "<4")})
	Require(pkg, []resolver.Need{{Dependent: in("api"), Dependency: corev1alpha1.Dependency{API: &corev1alpha1.DependencyAPI{Kind: "X"}}}})
	require.Equal(t, map[string]string{"own": "kept", corev1alpha1.RequiredByLabelPrefix + "web": "team", corev1alpha1.RequiredByLabelPrefix + "api": "team"}, pkg.Labels, "those of its own scope")
	before := pkg.DeepCopy()
	Require(pkg, []resolver.Need{need(in("web"), ">=2")})
	require.Equal(t, before, pkg, "the same again is not a change")
	for _, dependent := range []resolver.Instance{in("web"), in("api"), cluster, elsewhere, in("web")} {
		ReleaseFrom(pkg, dependent)
	}
	require.Equal(t, map[string]string{"own": "kept"}, pkg.Labels, "all are released")
}

// The labels on a package are bounded, no matter how many packages depend on it.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"team", ""} {
		pkg := newPackage(func(pkg *corev1alpha1.Package) { pkg.Namespace = scope })
		needs := func(k int) []resolver.Need {
			return []resolver.Need{{Dependent: resolver.Instance{Namespace: scope, Name: fmt.Sprintf("p%03d", k)}}}
		}
		for k := range 700 {
			Require(pkg, needs(k))
		}
		require.Equal(t, limits.RequiredByShown, len(pkg.Labels))
		before := pkg.DeepCopy()
		ReleaseFrom(pkg, needs(650)[0].Dependent)
		require.Equal(t, before, pkg, "one that is not named changes nothing")
		ReleaseFrom(pkg, needs(3)[0].Dependent)
		require.Equal(t, limits.RequiredByShown-1, len(pkg.Labels))
		if Require(pkg, needs(650)); len(pkg.Labels) != limits.RequiredByShown {
			t.Errorf("another does not take its place: %d labels", len(pkg.Labels))
		}
	}
}

func TestInherit(t *testing.T) {
	t.Parallel()
	values := []corev1alpha1.ValueSource{{}}
	parent := newPackage(func(pkg *corev1alpha1.Package) {
		pkg.Spec.ServiceAccountName, pkg.Spec.ImagePullPolicy, pkg.Spec.Paused = "deployer", "Always", true
		pkg.Spec.ImagePullSecrets = []corev1alpha1.LocalSecretReference{{Name: "pull"}}
		pkg.Spec.Dependencies = &corev1alpha1.PackageDependencies{
			Management: corev1alpha1.DependencyManagementAuto, DeletionPolicy: corev1alpha1.DeletionPolicyDelete,
			Overrides: []corev1alpha1.DependencyOverride{{Name: "db", ConfigFrom: values}, {Name: "cache"}},
		}
	})
	for _, tc := range []struct {
		reason, dependency string
		direct, configured bool
	}{
		{"with its values", "db", true, true},
		{"without values of its own", "cache", true, false},
		{"overrides apply to the package's own dependencies", "db", false, false},
	} {
		want := corev1alpha1.PackageSpec{
			PackageRef: &corev1alpha1.PackageReference{Name: "db"}, ServiceAccountName: "deployer", ImagePullPolicy: "Always",
			ImagePullSecrets: []corev1alpha1.LocalSecretReference{{Name: "pull"}},
			Dependencies:     &corev1alpha1.PackageDependencies{Management: corev1alpha1.DependencyManagementAuto, DeletionPolicy: corev1alpha1.DeletionPolicyDelete},
		}
		if tc.configured {
			want.ConfigFrom = values
		}
		pkg := &corev1alpha1.Package{}
		pkg.Spec.PackageRef, pkg.Spec.ServiceAccountName = &corev1alpha1.PackageReference{Name: "db"}, "before"
		Inherit(pkg, parent, tc.dependency, tc.direct)
		require.Equal(t, want, pkg.Spec, tc.reason)
	}
	plain, pkg := newPackage(), &corev1alpha1.Package{}
	if Inherit(pkg, plain, "db", true); !cmp.Equal(pkg.Spec, corev1alpha1.PackageSpec{}) {
		t.Errorf("%+v", pkg.Spec)
	}
}

func TestReportDependencies(t *testing.T) {
	t.Parallel()
	optional := outcomeOf("cache", "", corev1alpha1.ReasonVersionMismatch)
	optional.Dependency.Optional = true
	waiting := outcomeOf("db", "shop-db", corev1alpha1.ReasonNotAvailable)
	failed := outcomeOf("db", "", corev1alpha1.ReasonVersionMismatch)
	result := func(reason, message string, outcomes ...resolver.Outcome) resolver.Result {
		return resolver.Result{Ready: reason == corev1alpha1.ReasonDependenciesReady, Reason: reason, Message: message, Outcomes: outcomes}
	}
	for _, tc := range []struct {
		reason  string
		d       Plan
		want    string // of the condition
		stalled bool
	}{
		{"no dependencies", Plan{Result: resolver.Result{Ready: true}}, "", false},
		{"all available", Plan{Result: result("DependenciesReady", "", outcomeOf("db", "shop-db", corev1alpha1.ReasonAlreadyInstalled), optional)},
			"True DependenciesReady All dependencies are available.", false},
		{"waiting", Plan{Result: result("WaitingForDependencies", "Waiting for db.", waiting, optional)}, "False WaitingForDependencies db: NotAvailable.", false},
		{"unsatisfied", Plan{Result: result("DependenciesUnsatisfied", "db: VersionMismatch.", waiting, failed)},
			"False DependenciesUnsatisfied VersionMismatch: db: VersionMismatch.", true},
		{"a cycle", Plan{Result: result("DependencyCycle", "db: a → b → a", failed)}, "False DependencyCycle db: a → b → a", true},
		{"the plan could not be performed", Plan{Result: result("DependenciesReady", "", waiting), Err: errors.New("install db 1.0.0: forbidden")},
			"False DependenciesUnsatisfied install db 1.0.0: forbidden", false},
	} {
		pkg := newPackage()
		conditions.Set(&pkg.Status.Conditions, 1, corev1alpha1.ConditionDependenciesReady, false, "Before", "")
		tc.d.Entries = entriesOf(pkg, tc.d.Result.Outcomes)
		tc.d.Report(&pkg.Status, pkg.Generation)
		got := ""
		if c := meta.FindStatusCondition(pkg.Status.Conditions, corev1alpha1.ConditionDependenciesReady); c != nil {
			got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
		}
		if got != tc.want || len(pkg.Status.Dependencies) != len(tc.d.Result.Outcomes) {
			t.Errorf("%s: %s, %d entries; want %s", tc.reason, got, len(pkg.Status.Dependencies), tc.want)
		}
		require.Equal(t, tc.stalled, tc.d.Stalled(), fmt.Sprintf("%s: stalled", tc.reason))
	}
	pkg := recording(entry("db", "mine", corev1alpha1.ReasonAlreadyInstalled))
	before := pkg.DeepCopy()
	if (*Plan)(nil).Report(&pkg.Status, pkg.Generation); !cmp.Equal(before, pkg) {
		t.Error("without information the status stays")
	}
}

func TestReportHold(t *testing.T) {
	t.Parallel()
	pkg := newPackage()
	var by []resolver.Instance
	for k := range 12 {
		by = append(by, in(fmt.Sprintf("p%02d", k)))
	}
	ReportHold(&pkg.Status, pkg.Generation, by)
	c := meta.FindStatusCondition(pkg.Status.Conditions, corev1alpha1.ConditionDeletionHeld)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != corev1alpha1.ReasonRequired {
		t.Fatal(pkg.Status.Conditions)
	}
	for _, part := range []string{"Package team/p00, Package team/p01", " more. Delete these, or annotate this package with package-operator.run/delete-required=true."} {
		require.Contains(t, c.Message, part)
	}
	if ReportHold(&pkg.Status, pkg.Generation, nil); len(pkg.Status.Conditions) != 0 {
		t.Error(pkg.Status.Conditions)
	}
}

func TestStepsOf(t *testing.T) {
	t.Parallel()
	step := func(name string, create bool, dependents ...string) resolver.Step {
		s := resolver.Step{Instance: in(name), Create: create, Version: "2.0.0"}
		for _, d := range dependents {
			s.Needs = append(s.Needs, resolver.Need{Dependent: in(d)})
		}
		return s
	}
	all := []resolver.Step{
		step("db", true, "orm"), step("shared", false, "log", "orm"), step("orm", true, "shop"), step("files", true, "log"), step("log", true, "stats"), step("both", true, "stats", "shop"), step("raised", false, "else"),
	}
	there := step("there", false, "other")
	there.From = there.Version
	all = append([]resolver.Step{step("below", true, "there")}, append(all, there)...)
	for root, want := range map[string]string{"shop": "db shared orm both raised", "stats": "shared files log both raised", "other": "below", "nothing": ""} {
		var names []string
		for _, s := range stepsOf(all, in(root)) {
			names = append(names, s.Name)
		}
		require.Equal(t, want, strings.Join(names, " "), fmt.Sprintf("%s takes", root))
	}
}

func TestMayTake(t *testing.T) {
	t.Parallel()
	pkg := func(namespace string, change ...func(corev1alpha1.GenericPackage)) corev1alpha1.GenericPackage {
		p := corev1alpha1.ScopeOf(namespace).NewPackage()
		p.SetNamespace(namespace)
		p.SetName("db")
		p.PackageSpec().PackageRef = &corev1alpha1.PackageReference{Name: "db.example.com"}
		for _, c := range change {
			c(p)
		}
		return p
	}
	generated := func(p corev1alpha1.GenericPackage) {
		p.SetLabels(map[string]string{corev1alpha1.GeneratedLabel: "true"})
	}
	allows := func(p corev1alpha1.GenericPackage) {
		p.PackageSpec().UpgradePolicy = &corev1alpha1.UpgradePolicy{AllowDependents: true}
	}
	all := func(p corev1alpha1.GenericPackage) {
		p.PackageSpec().UpgradePolicy = &corev1alpha1.UpgradePolicy{AllowDependents: true, Dependents: corev1alpha1.DependentsAll}
	}
	heeds := func(p corev1alpha1.GenericPackage) {
		p.PackageSpec().UpgradePolicy = &corev1alpha1.UpgradePolicy{Dependents: corev1alpha1.DependentsAll}
	}
	deleted := func(p corev1alpha1.GenericPackage) { p.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)}) }
	for _, tc := range []struct {
		reason string
		own    string // namespace
		known  corev1alpha1.GenericPackage
		to     string // namespace of the created package
		want   bool
	}{
		{"creates in its namespace", "team", nil, "team", true},
		{"creates in another", "team", nil, "other", false},
		{"creates a ClusterPackage", "team", nil, "", false},
		{"a ClusterPackage creates one", "", nil, "", true},
		{"a ClusterPackage creates a Package", "", nil, "team", false},
		{"changes a package generated in its namespace", "team", pkg("team", generated), "", true},
		{"changes a package with a user's permission", "team", pkg("team", allows), "", true},
		{"changes a package without permission", "team", pkg("team"), "", false},
		{"changes a package that is being deleted", "team", pkg("team", generated, deleted), "", false},
		{"changes another namespace", "team", pkg("other", generated), "", false},
		{"changes another namespace, which considers all", "team", pkg("other", all), "", false},
		{"changes a generated ClusterPackage", "team", pkg("", generated), "", false},
		{"changes a ClusterPackage that allows dependents", "team", pkg("", allows), "", false},
		{"changes a ClusterPackage that heeds all", "team", pkg("", heeds), "", false},
		{"changes a ClusterPackage that heeds and allows all", "team", pkg("", all), "", true},
		{"a ClusterPackage changes one", "", pkg("", allows), "", true},
		{"a ClusterPackage changes a Package", "", pkg("team", generated), "", false},
	} {
		step := resolver.Step{Instance: resolver.Instance{Namespace: tc.to, Name: "db"}, Create: tc.known == nil}
		if tc.known != nil {
			step.Namespace = tc.known.GetNamespace()
		}
		if err := MayTake(resolver.Instance{Namespace: tc.own, Name: "x"}, step, tc.known); (err == nil) != tc.want {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// An upgrade names the dependents that do not accept it, and a deletion names all.
func TestRefusing(t *testing.T) {
	t.Parallel()
	of := resolver.Instance{Name: "db"}
	dependent := func(namespace, name string, on corev1alpha1.Dependency, at resolver.Instance) corev1alpha1.GenericPackage {
		pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
		pkg.SetNamespace(namespace)
		pkg.SetName(name)
		pkg.PackageStatus().Dependencies = []corev1alpha1.DependencyStatus{{Dependency: on, PackageRef: at.Reference()}, {Dependency: on}}
		return pkg
	}
	all := []corev1alpha1.GenericPackage{
		dependent("team", "old", dependencyOn("db", "<2"), of), dependent("team", "any", dependencyOn("db", ""), of), dependent("", "infra", dependencyOn("db", "~1"), of),
		dependent("team", "new", dependencyOn("db", ">=1"), of), dependent("team", "api", corev1alpha1.Dependency{Name: "api", API: &corev1alpha1.DependencyAPI{}}, of),
		dependent("team", "elsewhere", dependencyOn("db", "<2"), in("db")), dependent("team", "odd", dependencyOn("db", "none"), of),
	}
	for version, want := range map[string]string{
		"2.0.0": "ClusterPackage infra (~1), Package team/old (<2)", "1.5.0": "", "odd": "",
		"": "ClusterPackage infra, Package team/any, Package team/api, Package team/new, Package team/odd, Package team/old",
	} {
		require.Equal(t, want, strings.Join(Refusing(all, of, version), ", "), version)
	}
}

// A resolution depends on the packages of its scope, and on the availability of the packages that
// it uses.
func TestSameKnown(t *testing.T) {
	t.Parallel()
	list := func(change func([]resolver.Installed)) Known {
		all := []resolver.Installed{
			{Instance: in("a"), Package: "a", Version: "1.0.0"}, {Instance: in("b"), Package: "b", Version: "1.0.0"},
			{Instance: in("c"), Package: "c", Provides: []corev1alpha1.ProvidedAPI{{APIVersion: "v1", Kind: "X"}}}, {Instance: in("own"), Package: "own"},
		}
		change(all)
		return Known{Installed: all}
	}
	was := list(func([]resolver.Installed) {})
	for reason, tc := range map[string]struct {
		change func([]resolver.Installed)
		want   bool
	}{
		"nothing":                           {func([]resolver.Installed) {}, true},
		"what it uses became available":     {func(all []resolver.Installed) { all[0].Available = true }, false},
		"what it does not use did":          {func(all []resolver.Installed) { all[1].Available = true }, true},
		"the owner of an API that it needs": {func(all []resolver.Installed) { all[2].Available = true }, false},
		"another version":                   {func(all []resolver.Installed) { all[1].Version = "2.0.0" }, false},
		"a deletion":                        {func(all []resolver.Installed) { all[1].Deleting = true }, false},
		"a record":                          {func(all []resolver.Installed) { all[1].Requirements = make([]resolver.Requirement, 1) }, false},
		"itself":                            {func(all []resolver.Installed) { all[3].Available = true }, true},
	} {
		require.Equal(t, tc.want, Same(was, list(tc.change), in("own"), []string{"a", "v1 X"}), fmt.Sprintf("%s: the same", reason))
	}
	if now := list(func([]resolver.Installed) {}); Same(was, Known{Installed: now.Installed[:3]}, in("own"), nil) {
		t.Error("another number")
	}
}
