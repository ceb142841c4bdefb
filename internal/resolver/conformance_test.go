package resolver_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
	"lockstep.run/lockstep/test/conformance"
	"lockstep.run/lockstep/test/require"
)

type expectation = conformance.Expectation

func TestConformance(t *testing.T) {
	conformance.Suite{Operations: map[string]conformance.Operation{
		"dag": conformance.Of(graphed), "resolve": conformance.Of(judged), "choose-update": conformance.Of(updated), "prune": conformance.Of(pruned),
		"install-decision": conformance.Of(decided), "install-decision-list": conformance.Of(decidedList), "install-scope": conformance.Of(scoped),
		"wait": conformance.Of(waited), "choose-digest": conformance.Of(digested), "reconcile-step": conformance.Of(stepped),
		"install-plan": conformance.Of(planned), "validate-dependency": conformance.Of(checked),
	}}.Run(t)
}

// part is a package in a row, installed or not. Its name alone is enough.
type part struct {
	Name, Source, Package, Version, Constraint, DesiredState string
	Available                                                []string
	Dependencies                                             []part
}

func (p *part) UnmarshalJSON(data []byte) error {
	type plain part
	if json.Unmarshal(data, &p.Package) == nil {
		return nil
	}
	return conformance.Strict(data, (*plain)(p))
}

func (p *part) root() resolver.Root {
	root := resolver.Root{Instance: team(p.Source), Package: p.Source, Version: p.Version}
	for _, d := range p.Dependencies {
		root.Dependencies = append(root.Dependencies, on(d.Package, d.Constraint))
	}
	return root
}

func on(name, want string) corev1alpha1.Dependency {
	return corev1alpha1.Dependency{Name: name, Package: &corev1alpha1.DependencyPackage{Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: want}}}
}

// offersOf returns the available versions. A package without a range has 1.0.0.
func offersOf(parts []part) resolver.Offers {
	all := resolver.Offers{}
	for _, p := range parts {
		available := p.Available
		if available == nil && p.Constraint == "" {
			available = []string{"1.0.0"}
		}
		for _, v := range available {
			all[p.Package] = append(all[p.Package], offer(v))
		}
	}
	return all
}

func hasDigest(texts ...string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.HasPrefix(t, "sha256:") })
}

func constraintsOf(parts ...part) (all []string) {
	for _, p := range parts {
		all = append(all, p.Version)
		for _, d := range p.Dependencies {
			all = append(all, d.Constraint)
		}
	}
	return all
}

func steps(plan resolver.Plan, create bool) (of []string) {
	for _, s := range plan.Steps {
		if s.Create == create {
			of = append(of, s.Package)
		}
	}
	return of
}

// graphed checks missing packages. If all nodes are installed, the missing ones are created for a
// package that depends on all nodes. Otherwise the plan gives their order and detects a cycle.
func graphed(_ *testing.T, in struct {
	Nodes []struct {
		ID        string
		DependsOn []string
	}
	TraceFrom string
}, want *expectation,
) {
	nodes, installed := resolver.Offers{}, []resolver.Installed{}
	all, needed := resolver.Root{Instance: team("everything"), Package: "everything", Version: "1.0.0"}, map[string]bool{}
	for _, n := range in.Nodes {
		if nodes[n.ID] != nil {
			want.Otherwise(conformance.OneNamePerScope)
		}
		nodes[n.ID] = []resolver.Offer{offer("1.0.0", n.DependsOn...)}
		all.Dependencies = append(all.Dependencies, on(n.ID, ""))
		installed = append(installed, at("team", n.ID, n.ID, "1.0.0"))
		for _, to := range n.DependsOn {
			needed[to] = true
		}
	}
	catalogue, missing := maps.Clone(nodes), shop()
	for _, to := range slices.Sorted(maps.Keys(needed)) {
		missing.Dependencies = append(missing.Dependencies, on(to, ""))
		if nodes[to] == nil {
			catalogue[to] = []resolver.Offer{offer("1.0.0")}
		}
	}
	implied := steps(resolver.Solve(resolver.Input{Roots: []resolver.Root{missing}, Installed: installed, Catalogue: catalogue}), true)
	want.Set("implied", implied)
	want.Is("impliedCount", len(implied))

	plan := resolver.Solve(resolver.Input{Roots: []resolver.Root{all}, Catalogue: catalogue})
	cyclic := plan.Results[0].Reason == corev1alpha1.ReasonDependencyCycle
	want.Fails("sortError", cyclic, printed(plan))
	want.Fails("initError", false)
	order := steps(plan, true)
	want.Is("onlyOrder", order)
	conformance.Holds(want, "before", func(pairs [][2]string) bool {
		return !slices.ContainsFunc(pairs, func(p [2]string) bool { return slices.Index(order, p[0]) >= slices.Index(order, p[1]) })
	}, order)

	traced := resolver.Root{Instance: team(in.TraceFrom), Package: in.TraceFrom, Version: "1.0.0"}
	for _, o := range catalogue[in.TraceFrom] {
		traced.Dependencies = o.Dependencies
	}
	plan = resolver.Solve(resolver.Input{Roots: []resolver.Root{traced}, Catalogue: catalogue})
	want.Is("transitiveCount", len(plan.Steps), printed(plan))
	want.Is("installsNothing", len(plan.Steps) == 0, printed(plan))
}

// recordedBy returns the graph that users see of packages that depend on each other.
func recordedBy(results []resolver.Result) *graph.Graph {
	var all []corev1alpha1.GenericPackage
	for _, result := range results {
		pkg := &corev1alpha1.Package{}
		pkg.Namespace, pkg.Name = result.Namespace, result.Name
		for _, o := range result.Outcomes {
			d := corev1alpha1.DependencyStatus{Dependency: o.Dependency, Version: o.Version}
			if o.Satisfier != nil && !o.Failed {
				d.PackageRef = o.Satisfier.Reference()
			}
			conditions.Set(&d.Conditions, 1, corev1alpha1.ConditionSatisfied, o.Satisfied, o.Reason, o.Message)
			pkg.Status.Dependencies = append(pkg.Status.Dependencies, d)
		}
		all = append(all, pkg)
	}

	return graph.Of(all)
}

// judgedBy judges each package by the installed ones.
func judgedBy(packages []part) *graph.Graph {
	input := resolver.Input{}
	for _, p := range packages {
		root := p.root()
		root.UserManaged = true
		input.Roots = append(input.Roots, root)
		input.Installed = append(input.Installed, at("team", p.Source, p.Source, cmp.Or(p.Version, "1.0.0")))
	}
	return recordedBy(resolver.Solve(input).Results)
}

// judged checks what a package leads to if its user installs the dependencies.
func judged(_ *testing.T, in struct {
	Self part
	Lock []part
}, want *expectation,
) {
	packages := slices.DeleteFunc(slices.Clone(in.Lock), func(p part) bool { return p.Source == in.Self.Source })
	packages = append(packages, in.Self)
	if hasDigest(constraintsOf(packages...)...) {
		want.Otherwise(conformance.DigestsOfDependencies)
	}
	if in.Self.DesiredState != "" && in.Self.DesiredState != "Active" {
		want.Otherwise(conformance.NoInactiveRevision)
	}

	want.Otherwise(conformance.NoLock, "lockWritten", "lockSelfVersion")
	g := judgedBy(packages)
	self := graph.Key{Kind: "Package", Namespace: "team", Name: in.Self.Source}
	found, missing, unfit := map[string]bool{}, map[string]string{}, 0
	for _, n := range g.Nodes(func(n *graph.Node) bool { return n.Key == self }) {
		for _, e := range n.Dependencies {
			found[e.Package] = true
			switch e.Reason {
			case corev1alpha1.ReasonManagedByUser:
				missing[e.Package] = e.Range
			case corev1alpha1.ReasonVersionMismatch:
				unfit++
			}
		}
	}

	want.Is("found", len(found))
	want.Is("installed", len(found)-len(missing))
	want.Is("invalid", unfit)
	want.Is("lockWritten", false)
	want.Is("lockSelfVersion", "")
	conformance.Holds(want, "error", func(err *struct {
		Kind     string
		Packages []part
	},
	) bool {
		if err == nil {
			return len(missing)+unfit == 0
		}
		if isMissing := strings.Contains(err.Kind, "missing"); isMissing != (len(missing) > 0) || len(missing)+unfit == 0 {
			return false
		}
		return len(missing) == 0 || len(err.Packages) == len(missing) && !slices.ContainsFunc(err.Packages, func(p part) bool {
			wants, is := missing[p.Package]
			return !is || p.Constraint != "" && p.Constraint != wants
		})
	}, missing, unfit)
}

// pruned checks that dependents do not record an installed package that satisfies no requirement on
// it.
func pruned(_ *testing.T, in struct{ Packages []part }, want *expectation) {
	if hasDigest(constraintsOf(in.Packages...)...) {
		want.Otherwise(conformance.DigestsOfDependencies)
	}

	g, needed, kept := judgedBy(in.Packages), map[string]bool{}, []string{}
	for _, p := range in.Packages {
		for _, d := range p.Dependencies {
			needed[d.Package] = true
		}
	}

	for _, p := range in.Packages {
		if n := g.Node(graph.Key{Kind: "Package", Namespace: "team", Name: p.Source}); !needed[p.Source] || len(n.Dependents) > 0 {
			kept = append(kept, p.Name)
		}
	}

	want.Set("kept", kept)
}

// parents are packages that require the same package, each in its own range.
func parents(ranges []string, versions ...string) resolver.Input {
	offers := resolver.Offers{}
	for _, v := range versions {
		offers["dep"] = append(offers["dep"], offer(v))
	}
	in := resolver.Input{Catalogue: offers}
	for i, c := range ranges {
		name := fmt.Sprintf("parent%02d", i)
		in.Roots = append(in.Roots, resolver.Root{Instance: team(name), Package: name, Version: "1.0.0", Dependencies: []corev1alpha1.Dependency{on("dep", c)}})
	}
	return in
}

// updated checks several packages that require a generated package.
func updated(_ *testing.T, in struct {
	Installed                    string
	ParentConstraints, Available []string
	DowngradesEnabled            bool
}, want *expectation,
) {
	input := parents(in.ParentConstraints, in.Available...)
	input.Installed = []resolver.Installed{at("team", "dep", "dep", in.Installed, changeable)}
	plan, got := resolver.Solve(input), in.Installed
	for _, s := range plan.Steps {
		got = s.Version
	}

	failed := slices.ContainsFunc(plan.Results, fails)
	if failed {
		got = ""
	}

	switch {
	case hasDigest(append(in.ParentConstraints, in.Installed)...):
		want.Otherwise(conformance.DigestsOfDependencies)
	case in.DowngradesEnabled && failed:
		want.Otherwise(conformance.NeverLowered)
	}

	want.Is("version", got, printed(plan))
	want.Fails("error", failed, printed(plan))
}

var version = regexp.MustCompile(`\d+\.\d+\.\d+`)

// digested checks that a digest is not a range. Every version that is required otherwise exists.
func digested(_ *testing.T, in struct{ ParentConstraints []string }, want *expectation) {
	all := slices.Concat([]string{"1.0.0"}, version.FindAllString(strings.Join(in.ParentConstraints, " "), -1))
	slices.Sort(all)
	plan := resolver.Solve(parents(in.ParentConstraints, slices.Compact(all)...))
	if digests := slices.Compact(slices.Clone(in.ParentConstraints)); len(digests) == 1 && hasDigest(digests...) {
		want.Otherwise(conformance.DigestsOfDependencies)
	}
	want.Is("digest", "")
	want.Fails("error", slices.ContainsFunc(plan.Results, fails), printed(plan))
}

// stepped checks the plan for all packages that are missing or do not fit.
func stepped(_ *testing.T, in struct {
	Missing, Installed   []part
	Upgrades, Downgrades *bool
}, want *expectation,
) {
	all := slices.Concat(in.Missing, in.Installed)
	root, input := shop(), resolver.Input{Catalogue: offersOf(all)}
	for _, p := range all {
		root.Dependencies = append(root.Dependencies, on(p.Package, p.Constraint))
	}

	for _, p := range in.Installed {
		input.Installed = append(input.Installed, at("team", p.Package, p.Package, p.Version, changeable))
	}

	input.Roots = []resolver.Root{root}
	plan := resolver.Solve(input)
	changed := steps(plan, false)
	switch {
	case len(in.Missing) > 1:
		want.Otherwise(conformance.InstalledTogether)
	case in.Upgrades != nil && !*in.Upgrades && len(changed) > 0:
		want.Otherwise(conformance.RaisedTogether)
	}

	want.Is("created", len(steps(plan, true)), printed(plan))
	want.Is("updated", len(changed), printed(plan))
	want.Is("resolved", !fails(plan.Results[0]), printed(plan))
}

// planned checks that a missing package is installed in the latest version in range.
func planned(_ *testing.T, in struct{ Dependencies, Installed []part }, want *expectation) {
	root := shop()
	for _, p := range in.Dependencies {
		root.Dependencies = append(root.Dependencies, on(p.Package, p.Constraint))
	}

	input := resolver.Input{Roots: []resolver.Root{root}, Catalogue: offersOf(in.Dependencies)}
	for _, p := range in.Installed {
		input.Installed = append(input.Installed, at("team", p.Package, p.Package, p.Version))
	}

	plan, got := resolver.Solve(input), map[string]string{}
	for _, s := range plan.Steps {
		got[s.Package] = s.Version
	}

	want.Is("installs", got, printed(plan))
	want.Fails("error", fails(plan.Results[0]), printed(plan))
}

type declared struct {
	Name, RefName, Constraints string
	GVK                        *corev1alpha1.ProvidedAPI
	Optional                   bool
}

func (d declared) dependency() corev1alpha1.Dependency {
	out := corev1alpha1.Dependency{Name: d.Name, Optional: d.Optional}
	if d.GVK != nil {
		out.API = &corev1alpha1.DependencyAPI{APIVersion: d.GVK.APIVersion, Kind: d.GVK.Kind}
	} else {
		out.Package = &corev1alpha1.DependencyPackage{Name: d.RefName, VersionSelection: corev1alpha1.VersionSelection{Version: d.Constraints}}
	}
	return out
}

// override is a user's change of a dependency. The constraint is enough if there is only one
// dependency.
type override struct {
	Name, RefName, Version, Constraints string
	PackageRef                          *struct {
		RefName          string
		VersionSelection struct {
			Constraints string
			Prereleases *corev1alpha1.Prereleases
		}
	}
}

func (o *override) UnmarshalJSON(data []byte) error {
	type plain override
	if json.Unmarshal(data, &o.Constraints) == nil {
		return nil
	}
	return conformance.Strict(data, (*plain)(o))
}

// overrides are one override or a list.
type overrides []override

func (o *overrides) UnmarshalJSON(data []byte) error {
	*o = make(overrides, 1)
	if err := conformance.Strict(data, &(*o)[0]); err == nil {
		return nil
	}
	return conformance.Strict(data, (*[]override)(o))
}

type situation struct {
	Dependency       declared
	Dependencies     []declared
	ExistingInstalls []struct{ Name, Namespace, RefName, Version string }
	Packages         []string
	Catalogue        []struct {
		RefName, Version string
		Provides         []corev1alpha1.ProvidedAPI
	}
	ServedAPIs       []corev1alpha1.ProvidedAPI `json:"servedApis"`
	ManagedBy        string
	Override         overrides
	ProviderSearch   *bool
	InstallationType string
}

// spec returns the user's part of the dependencies.
func (s situation) spec() *corev1alpha1.PackageDependencies {
	spec := &corev1alpha1.PackageDependencies{Management: corev1alpha1.DependencyManagement(s.ManagedBy)}
	for _, o := range s.Override {
		by := corev1alpha1.DependencyPackageOverride{Name: o.RefName, VersionSelection: corev1alpha1.VersionSelection{Version: cmp.Or(o.Version, o.Constraints)}}
		if ref := o.PackageRef; ref != nil {
			by.Name, by.Version, by.Prereleases = ref.RefName, ref.VersionSelection.Constraints, ref.VersionSelection.Prereleases
		}
		spec.Overrides = append(spec.Overrides, corev1alpha1.DependencyOverride{Name: cmp.Or(o.Name, s.Dependency.Name), Package: &by})
	}
	return spec
}

func (s situation) solve() resolver.Plan {
	root, offers := shop(), resolver.Offers{}
	for _, d := range append(slices.Clone(s.Dependencies), s.Dependency) {
		if d.Name == "" {
			continue
		}
		root.Dependencies = append(root.Dependencies, d.dependency())
		for _, v := range s.Packages {
			if o := offer(v); d.RefName != "" && !slices.ContainsFunc(offers[d.RefName], func(p resolver.Offer) bool { return p.Version == v }) {
				offers[d.RefName] = append(offers[d.RefName], o)
			}
		}
	}

	spec := s.spec()
	root.Dependencies = snapshot.Overridden(root.Dependencies, spec)
	root.UserManaged = spec.Management == corev1alpha1.DependencyManagementUser
	for _, c := range s.Catalogue {
		offers[c.RefName] = append(offers[c.RefName], resolver.Offer{Candidate: versions.Candidate{Version: c.Version, Provides: c.Provides}})
	}

	in := resolver.Input{Roots: []resolver.Root{root}, Catalogue: offers, Served: func(api *corev1alpha1.DependencyAPI) (bool, []string) {
		return slices.Contains(s.ServedAPIs, corev1alpha1.ProvidedAPI{APIVersion: api.APIVersion, Kind: api.Kind}), nil
	}}

	for _, i := range s.ExistingInstalls {
		in.Installed = append(in.Installed, at(root.Namespace, i.Name, i.RefName, i.Version))
	}

	return resolver.Solve(in)
}

// conditionsOf returns the proposal's names for the outcome of a requirement.
func conditionsOf(plan resolver.Plan, o resolver.Outcome) []string {
	creates := slices.ContainsFunc(plan.Steps, func(s resolver.Step) bool { return s.Create && o.Satisfier != nil && s.Instance == *o.Satisfier })
	switch {
	case creates:
		return []string{"OwnedPackageInstall"}
	case o.Reason == corev1alpha1.ReasonAPIServed:
		return []string{"ExistingGVK"}
	case o.Reason == corev1alpha1.ReasonVersionMismatch:
		return []string{"FoundPackageInstall", "FoundPackageInstallRequiresDifferentVersion"}
	case o.Satisfier != nil:
		return []string{"FoundPackageInstall"}
	case o.Reason == corev1alpha1.ReasonNoMatchingVersion:
		return []string{"UnknownPackageVersion"}
	case o.Reason == corev1alpha1.ReasonUnknownPackage:
		return []string{"UnknownPackage"}
	}

	return []string{o.Reason}
}

func decided(_ *testing.T, in situation, want *expectation) {
	plan := in.solve()
	if in.ProviderSearch != nil && !*in.ProviderSearch && in.Dependency.GVK != nil {
		want.Otherwise(conformance.ProvidersAreFound)
	}

	o := plan.Results[0].Outcomes[0]
	of, version := "", ""
	for _, s := range plan.Steps {
		of, version = s.Package, s.Version
	}

	want.Is("create", len(steps(plan, true)) > 0, printed(plan))
	want.Is("parentFails", fails(plan.Results[0]), printed(plan))
	got := conditionsOf(plan, o)
	conformance.Holds(want, "conditions", func(names []string) bool {
		return slices.ContainsFunc(got, func(c string) bool { return slices.Contains(names, c) })
	}, got)
	want.Is("refName", of, printed(plan))
	want.Is("version", version, printed(plan))
}

func decidedList(_ *testing.T, in situation, want *expectation) {
	plan, got := in.solve(), []string{}
	for _, s := range plan.Steps {
		got = append(got, s.Version)
	}
	want.Is("createdCount", len(steps(plan, true)), printed(plan))
	want.Set("versions", got, printed(plan))
}

// manifestWith is a manifest with one additional field in its spec.
func manifestWith(field string) loader.Files {
	return loader.Files{"manifest.yaml": []byte("apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\n" +
		"metadata: {name: shop}\nspec:\n  version: 1.0.0\n  scopes: [Namespaced]\n  " + field + "\n")}
}

// scoped checks whether there is room for one more installation.
func scoped(t *testing.T, in struct {
	Existing         []manifest.Other
	InstallationType string
	New              manifest.Other
}, want *expectation,
) {
	constraint := map[string]string{
		"onePerCluster":   "phases: [{name: deploy}]\n  constraints: [{uniqueInScope: {scope: Cluster}}]",
		"noRestrictions":  "phases: [{name: deploy}]",
		"onePerNamespace": "phases: [{name: deploy}]\n  constraints: [{uniqueInScope: {scope: Namespace}}]",
	}[in.InstallationType]
	if in.InstallationType == "onePerCluster" && in.New.Namespace != "" {
		want.Otherwise(conformance.UniqueInItsScope)
	}

	of, problems := manifest.Read(manifestWith(constraint), "")
	if len(problems) > 0 {
		t.Fatal(problems)
	}

	unmet := of.NotUnique(in.New, in.Existing)
	want.Is("allowed", len(unmet) == 0, unmet)
}

// waited checks the dependencies that a package waits for.
func waited(_ *testing.T, in struct {
	Dependencies []struct{ Name, State string }
	Synchronous  *bool
}, want *expectation,
) {
	if in.Synchronous != nil && !*in.Synchronous {
		want.Otherwise(conformance.AlwaysWaits)
	}

	root, input := shop(), resolver.Input{}
	for _, dep := range in.Dependencies {
		root.Dependencies = append(root.Dependencies, on(dep.Name, ""))
		i := at("team", dep.Name, dep.Name, "1.0.0")
		i.Available = slices.Contains([]string{"ReconcileSucceeded", "Ready", "Available", "Succeeded", "Reconciled"}, dep.State)
		input.Installed = append(input.Installed, i)
	}

	input.Roots = []resolver.Root{root}
	got := resolver.Solve(input).Results[0].Reason
	conformance.Holds(want, "parentState", func(state string) bool {
		return (state == corev1alpha1.ReasonWaitingForDependencies) == (got == corev1alpha1.ReasonWaitingForDependencies)
	}, got)
}

// checked checks which dependencies a manifest can have. Provider, configuration and function are
// the kinds of packages in Crossplane.
func checked(t *testing.T, in struct {
	Package, Provider, Configuration, Function, CRD, Crossplane, Version string
	API                                                                  *corev1alpha1.ProvidedAPI
}, want *expectation,
) {
	entry := map[string]any{"name": "dep"}
	for _, source := range []string{in.Package, in.Provider, in.Configuration, in.Function} {
		if source != "" {
			name := strings.NewReplacer("/", ".", "_", "-", ":", ".").Replace(strings.ToLower(source))
			entry["package"] = map[string]any{"name": name, "version": in.Version}
		}
	}

	if plural, group, _ := strings.Cut(in.CRD, "."); in.CRD != "" {
		in.API = &corev1alpha1.ProvidedAPI{APIVersion: group + "/v1", Kind: strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")}
	}
	if in.API != nil {
		entry["api"] = in.API
	}
	if in.Crossplane != "" {
		want.Otherwise(conformance.EngineIsNoDependency)
		entry["crossplane"] = in.Crossplane
	}

	text, err := json.Marshal(entry)
	require.NoError(t, err)
	_, err = loader.Validate(t.Context(), manifestWith("dependencies: ["+string(text)+"]"))
	want.Is("valid", err == nil, err)
	want.Fails("error", err != nil, err)
}
