package resolver_test

import (
	"slices"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/testing/conformance"
)

type (
	row           = conformance.Row
	notApplicable = conformance.NotApplicable
	differences   = conformance.Differences
)

const (
	noDigests   notApplicable = "dependencies are on versions; digests pin images, in locks"
	noDowngrade notApplicable = "what is installed is never taken to a lower version for others"
	noParts     notApplicable = "of a set that cannot be resolved no part is installed"
)

// TestConformance runs the rows of testdata/conformance, or those of the folder CONFORMANCE_DIR.
func TestConformance(t *testing.T) {
	conformance.Suite{
		Operations: map[string]func(t *testing.T, r row) (string, notApplicable){
			"dag": graphed, "resolve": judged, "choose-update": updated, "prune": pruned, "scenario": played,
			"install-decision": decided, "install-decision-list": decidedList, "install-scope": scoped, "wait": waited,
			"choose-digest": digested, "reconcile-step": stepped, "install-plan": planned, "ownership": owned,
			"ownership-conflict": contested, "validate-dependency": checked,
		},
		Elsewhere: map[string]notApplicable{"delete": "TestConformance of internal/controllers/packages runs these"},
	}.Run(t)
}

func has(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func instance(name string) resolver.Instance {
	return resolver.Instance{Namespace: "team", Name: name}
}

func isDigest(texts ...string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.HasPrefix(t, "sha256:") })
}

func on(name, want string) corev1alpha1.Dependency {
	return corev1alpha1.Dependency{Name: name, Package: &corev1alpha1.DependencyPackage{Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: want}}}
}

// graphed: nodes are what is installed; the one that is traced from is resolved, too.
func graphed(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct {
		Nodes []struct {
			ID        string
			DependsOn []string
		}
		TraceFrom string
	}, struct {
		Implied                               []string
		ImpliedCount, TransitiveCount         *int
		SortError, InitError, InstallsNothing bool
		OnlyOrder                             []string
		Before                                [][]string
	}](t, r)
	if want.InitError {
		return "", "names of installed packages are unique in a namespace"
	}
	var installed []resolver.Installed
	known := map[string]bool{}
	for _, n := range in.Nodes {
		known[n.ID] = true
	}
	offers := resolver.Offers{}
	for _, n := range in.Nodes {
		i := resolver.Installed{Instance: instance(n.ID), Package: n.ID, Version: "1.0.0"}
		var deps []corev1alpha1.Dependency
		for _, to := range n.DependsOn {
			deps = append(deps, on(to, ""))
			requirement := resolver.Requirement{Dependency: on(to, "")}
			if at := instance(to); known[to] {
				requirement.Satisfier = &at
			} else if offers[to] == nil {
				offers[to] = []resolver.Offer{offer("1.0.0")}
			}
			i.Requirements = append(i.Requirements, requirement)
		}
		offers[n.ID] = []resolver.Offer{{Candidate: versions.Candidate{Version: "1.0.0"}, Dependencies: deps}}
		installed = append(installed, i)
	}
	g := resolver.NewGraph(installed)
	var d differences
	d.Unless((g.Cycle() != nil) == want.SortError, "cycle %v", g.Cycle())
	if want.Implied != nil {
		slices.Sort(want.Implied)
		d.Unless(slices.Equal(g.Missing, want.Implied), "missing %v", g.Missing)
	}
	d.Unless(want.ImpliedCount == nil || len(g.Missing) == *want.ImpliedCount, "%d missing", len(g.Missing))
	if offered := offers[in.TraceFrom]; len(offered) > 0 {
		plan := resolver.Solve(resolver.Input{Catalogue: offers, Roots: []resolver.Root{{Instance: instance(in.TraceFrom), Package: in.TraceFrom, Version: "1.0.0", Dependencies: offered[0].Dependencies}}})
		d.Unless(want.TransitiveCount == nil || len(plan.Steps) == *want.TransitiveCount, "%d steps", len(plan.Steps))
		d.Unless(!want.InstallsNothing || len(plan.Steps) == 0, "%d steps", len(plan.Steps))
		d.Unless(!want.InstallsNothing || !want.SortError || plan.Results[0].Reason == corev1alpha1.ReasonDependencyCycle, "%s", printed(plan))
	}
	// Installations are in the reverse order of teardowns, and what is missing comes before all of them.
	order := slices.Clone(g.Missing)
	for _, i := range slices.Backward(g.Order()) {
		order = append(order, i.Name)
	}
	d.Unless(want.OnlyOrder == nil || slices.Equal(order, want.OnlyOrder), "order %v", order)
	for _, pair := range want.Before {
		if len(pair) == 2 {
			d.Unless(slices.Index(order, pair[0]) < slices.Index(order, pair[1]), "order %v", order)
		}
	}
	return d.String(), ""
}

type needed struct{ Package, Constraint string }

// judged: what is installed satisfies a package, or what is missing or does not fit, as its user would have to know.
func judged(t *testing.T, r row) (string, notApplicable) {
	type entry struct {
		Name, Source, Version, DesiredState string
		Dependencies                        []any
	}
	in, want := conformance.Decode[struct {
		Self entry
		Lock []entry
	}, struct {
		Error *struct {
			Kind     string
			Packages []struct{ Package string }
		}
		Found, Installed, Invalid *int
	}](t, r)
	if in.Self.DesiredState != "" && in.Self.DesiredState != "Active" {
		return "", "an inactive package is archived, and resolves nothing"
	}
	needs := func(of entry) (all []needed) {
		for _, d := range of.Dependencies {
			switch d := d.(type) {
			case string:
				all = append(all, needed{Package: d})
			case map[string]any:
				name, _ := d["package"].(string)
				constraint, _ := d["constraint"].(string)
				all = append(all, needed{name, constraint})
			}
		}
		return all
	}
	var installed []resolver.Installed
	known, isRecorded := map[string]bool{}, false
	for _, e := range in.Lock {
		known[e.Source] = true
	}
	for _, e := range in.Lock {
		i := resolver.Installed{Instance: instance(e.Source), Package: e.Source, Version: e.Version, Available: true}
		isRecorded = isRecorded || e.Source == in.Self.Source
		if isDigest(e.Version) {
			return "", noDigests
		}
		for _, n := range needs(e) {
			requirement := resolver.Requirement{Dependency: on(n.Package, n.Constraint)}
			if at := instance(n.Package); known[n.Package] {
				requirement.Satisfier = &at
			}
			i.Requirements = append(i.Requirements, requirement)
		}
		installed = append(installed, i)
	}
	root := resolver.Root{Instance: instance(in.Self.Source), Package: in.Self.Source, Version: in.Self.Version, UserManaged: true}
	for _, n := range needs(in.Self) {
		if isDigest(n.Constraint) {
			return "", noDigests
		}
		root.Dependencies = append(root.Dependencies, on(n.Package, n.Constraint))
	}
	result := resolver.Solve(resolver.Input{Roots: []resolver.Root{root}, Installed: installed}).Results[0]
	var missing, invalid []string
	for _, o := range result.Outcomes {
		switch {
		case o.Reason == corev1alpha1.ReasonManagedByUser:
			missing = append(missing, o.Dependency.Name)
		case o.Failed:
			invalid = append(invalid, o.Dependency.Name)
		}
	}
	found, present := len(result.Outcomes), len(result.Outcomes)-len(missing)
	if isRecorded {
		g := resolver.NewGraph(installed)
		missing = g.Missing
		present = len(g.Reached(root.Instance))
		found = present + len(missing)
	}
	var d differences
	failed := len(missing)+len(invalid) > 0
	d.Unless((want.Error != nil) == failed, "missing %v, invalid %v", missing, invalid)
	if want.Error != nil && want.Error.Kind == "missing" {
		for _, p := range want.Error.Packages {
			d.Unless(slices.Contains(missing, p.Package), "missing %v", missing)
		}
	}
	d.Unless(want.Found == nil || *want.Found == found, "found %d", found)
	d.Unless(want.Installed == nil || *want.Installed == present, "installed %d", present)
	d.Unless(want.Invalid == nil || len(missing) > 0 || *want.Invalid == len(invalid), "invalid %v", invalid)
	return d.String(), ""
}

// updated: several packages require one that was generated.
func updated(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct {
		Installed                    string
		ParentConstraints, Available []string
		DowngradesEnabled            bool
	}, struct{ Version *string }](t, r)
	if isDigest(append(in.ParentConstraints, in.Installed)...) {
		return "", noDigests
	}
	present, err := versions.Parse(in.Installed)
	if err != nil {
		return "", "versions that are installed are semantic versions"
	}
	input := resolver.Input{Installed: []resolver.Installed{{Instance: instance("dep"), Package: "dep", Version: in.Installed, Changeable: true, Generated: true, Available: true}}}
	offers := resolver.Offers{}
	for _, v := range in.Available {
		offers["dep"] = append(offers["dep"], offer(v))
	}
	input.Catalogue = offers
	for i, c := range in.ParentConstraints {
		name := "parent" + string(rune('a'+i))
		input.Roots = append(input.Roots, resolver.Root{Instance: instance(name), Package: name, Version: "1.0.0", Dependencies: []corev1alpha1.Dependency{on("dep", c)}})
	}
	plan := resolver.Solve(input)
	got := in.Installed
	for _, s := range plan.Steps {
		got = s.Version
	}
	for _, result := range plan.Results {
		if result.Outcomes[0].Failed {
			got = ""
		}
	}
	if lower, err := versions.Parse(has(want.Version)); err == nil && in.DowngradesEnabled && versions.Compare(lower, present) < 0 {
		return "", noDowngrade
	}
	var d differences
	d.Unless(strings.TrimPrefix(got, "v") == strings.TrimPrefix(has(want.Version), "v"), "%q: %s", got, printed(plan))
	return d.String(), ""
}

// pruned: what is installed and satisfies no requirement on it counts for none.
func pruned(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct {
		Packages []struct {
			Name, Source, Version string
			Dependencies          []needed
		}
	}, struct{ Kept []string }](t, r)
	var installed []resolver.Installed
	at := map[string]resolver.Instance{}
	for _, p := range in.Packages {
		at[p.Source] = instance(p.Name)
	}
	for _, p := range in.Packages {
		i := resolver.Installed{Instance: instance(p.Name), Package: p.Source, Version: p.Version}
		for _, n := range p.Dependencies {
			requirement := resolver.Requirement{Dependency: on(n.Package, n.Constraint)}
			if to, ok := at[n.Package]; ok {
				requirement.Satisfier = &to
			}
			i.Requirements = append(i.Requirements, requirement)
		}
		installed = append(installed, i)
	}
	g := resolver.NewGraph(installed)
	kept := []string{}
	for _, i := range installed {
		by := g.RequiredBy(i.Instance)
		if len(by) == 0 || slices.ContainsFunc(by, func(l resolver.Link) bool { return l.Satisfied }) {
			kept = append(kept, i.Name)
		}
	}
	slices.Sort(kept)
	slices.Sort(want.Kept)
	var d differences
	d.Unless(slices.Equal(kept, want.Kept), "kept %v", kept)
	if d != nil {
		for _, p := range in.Packages {
			if isDigest(p.Version) {
				return "", noDigests
			}
		}
	}
	return d.String(), ""
}

// scoped: room for one more installation.
func scoped(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct {
		Existing         []resolver.Instance
		InstallationType string
		New              resolver.Instance
	}, struct{ Allowed bool }](t, r)
	unique := map[string]corev1alpha1.UniqueScope{"onePerCluster": corev1alpha1.UniqueScopeCluster, "onePerNamespace": corev1alpha1.UniqueScopeNamespace}[in.InstallationType]
	var installed []resolver.Installed
	for _, i := range in.Existing {
		installed = append(installed, resolver.Installed{Instance: i, Package: "x", Version: "1.0.0", Unique: unique})
	}
	occupied := resolver.NewGraph(installed).Occupied(in.New, "x", unique)
	if !want.Allowed && len(occupied) == 0 && unique == corev1alpha1.UniqueScopeCluster && in.New.Namespace != "" {
		return "", "a Package is unique in its namespace; what is unique in the cluster is a matter of ClusterPackages"
	}
	var d differences
	d.Unless(want.Allowed == (len(occupied) == 0), "occupied by %v", occupied)
	return d.String(), ""
}

// waited: what a package waits for.
func waited(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct {
		Dependencies []struct{ Name, State string }
		Synchronous  bool
	}, struct{ ParentState string }](t, r)
	if !in.Synchronous {
		return "", "a package always waits for what it depends on"
	}
	root := shop()
	var installed []resolver.Installed
	for _, dep := range in.Dependencies {
		root.Dependencies = append(root.Dependencies, on(dep.Name, ""))
		ready := slices.Contains([]string{"ReconcileSucceeded", "Ready", "Available", "Succeeded", "Reconciled"}, dep.State)
		installed = append(installed, resolver.Installed{Instance: instance(dep.Name), Package: dep.Name, Version: "1.0.0", Available: ready})
	}
	result := resolver.Solve(resolver.Input{Roots: []resolver.Root{root}, Installed: installed}).Results[0]
	var d differences
	d.Unless((want.ParentState == corev1alpha1.ReasonWaitingForDependencies) == (result.Reason == corev1alpha1.ReasonWaitingForDependencies), "%s", result.Reason)
	return d.String(), ""
}
