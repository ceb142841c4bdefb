package resolver_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/resolver"
)

const otherShape notApplicable = "the row has another shape than the README of testdata/conformance describes"

// read decodes a row; false where it has another shape.
func read[I, E any](r row) (input I, expected E, ok bool) {
	return input, expected, json.Unmarshal(r.Input, &input) == nil && json.Unmarshal(r.Expected, &expected) == nil
}

// part is a package of a row; it may be given by its name alone.
type part struct {
	Package, Version, Constraint string
	Available                    []string
}

func (p *part) UnmarshalJSON(data []byte) error {
	type plain part
	if json.Unmarshal(data, &p.Package) == nil {
		return nil
	}
	return json.Unmarshal(data, (*plain)(p))
}

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

// digested: no digest is a version of a dependency, so that one that names a digest fails, as those that contradict each other.
func digested(_ *testing.T, r row) (string, notApplicable) {
	in, want, ok := read[struct{ ParentConstraints []string }, struct {
		Digest *string
		Error  any
	}](r)
	if !ok {
		return "", otherShape
	}
	input := resolver.Input{}
	offers := resolver.Offers{"dep": {offer("1.0.0")}}
	for i, c := range in.ParentConstraints {
		name := "parent" + string(rune('a'+i))
		input.Roots = append(input.Roots, resolver.Root{Instance: instance(name), Package: name, Dependencies: []corev1alpha1.Dependency{on("dep", c)}})
		if v, err := versions.Parse(c); err == nil && v.String() != "1.0.0" {
			offers["dep"] = append(offers["dep"], offer(v.String()))
		}
	}
	input.Catalogue = offers
	plan := resolver.Solve(input)
	failed, unread := 0, 0
	for _, result := range plan.Results {
		if fails(result) {
			failed++
		}
		if strings.Contains(result.Message, "cannot be read") {
			unread++
		}
	}
	var d differences
	switch {
	case has(want.Digest) != "":
		return "", noDigests
	case want.Error != nil:
		d.Unless(failed > 0, "%s", printed(plan))
	default:
		d.Unless(unread == 0, "%s", printed(plan))
	}
	return d.String(), ""
}

// stepped: what is planned at once for what is missing or does not fit.
func stepped(_ *testing.T, r row) (string, notApplicable) {
	in, want, ok := read[struct {
		Missing, Installed []part
		Upgrades           *bool
	}, struct {
		Created, Updated *int
		Resolved         *bool
	}](r)
	if !ok || len(in.Missing)+len(in.Installed) == 0 {
		return "", otherShape
	}
	all := slices.Concat(in.Missing, in.Installed)
	root := shop()
	input := resolver.Input{Catalogue: offersOf(all)}
	for _, p := range all {
		root.Dependencies = append(root.Dependencies, on(p.Package, p.Constraint))
	}
	for _, p := range in.Installed {
		input.Installed = append(input.Installed, at("team", p.Package, p.Package, p.Version, changeable))
	}
	input.Roots = []resolver.Root{root}
	plan := resolver.Solve(input)
	created, updated := 0, 0
	for _, s := range plan.Steps {
		if s.Create {
			created++
		} else {
			updated++
		}
	}
	switch {
	case want.Created != nil && *want.Created == 1 && len(in.Missing) > 1:
		return "", "all that is missing is installed in one pass"
	case in.Upgrades != nil && !*in.Upgrades && updated > 0:
		return "", "what was generated is raised without an option"
	}
	var d differences
	d.Unless(want.Created == nil || *want.Created == created, "created %d", created)
	d.Unless(want.Updated == nil || *want.Updated == updated, "updated %d", updated)
	d.Unless(want.Resolved == nil || *want.Resolved != fails(plan.Results[0]), "%s", printed(plan))
	return d.String(), ""
}

// planned: the latest version in range of what a package needs and lacks.
func planned(_ *testing.T, r row) (string, notApplicable) {
	in, want, ok := read[struct{ Dependencies, Installed []part }, struct {
		Installs map[string]string
		Error    *bool
	}](r)
	if !ok || len(in.Dependencies) == 0 {
		return "", otherShape
	}
	root := shop()
	for _, p := range in.Dependencies {
		root.Dependencies = append(root.Dependencies, on(p.Package, p.Constraint))
	}
	input := resolver.Input{Roots: []resolver.Root{root}, Catalogue: offersOf(in.Dependencies)}
	for _, p := range in.Installed {
		input.Installed = append(input.Installed, at("team", p.Package, p.Package, p.Version))
	}
	plan := resolver.Solve(input)
	got := map[string]string{}
	for _, s := range plan.Steps {
		got[s.Package] = s.Version
	}
	var d differences
	d.Unless(want.Installs == nil || maps.Equal(got, want.Installs), "%s", printed(plan))
	d.Unless(want.Error == nil || *want.Error == fails(plan.Results[0]), "%s", printed(plan))
	return d.String(), ""
}

// owned: packages that need one that is missing are installed one after the other.
func owned(_ *testing.T, r row) (string, notApplicable) {
	in, want, ok := read[struct {
		Parents    []string
		Dependency string
	}, struct {
		CreatedBy    *string
		CreatedCount *int
		RequiredBy   []string
	}](r)
	if !ok || len(in.Parents) == 0 {
		return "", otherShape
	}
	input := resolver.Input{Catalogue: resolver.Offers{"dep": {offer("1.0.0")}}}
	created, by, labels := 0, "", []string{}
	for _, name := range in.Parents {
		root := resolver.Root{Instance: instance(name), Package: name, Version: "1.0.0", Dependencies: []corev1alpha1.Dependency{on("dep", "")}}
		input.Roots = []resolver.Root{root}
		plan := resolver.Solve(input)
		for _, s := range plan.Steps {
			created, by = created+1, s.Needs[0].Dependent.Name
			input.Installed = append(input.Installed, resolver.Installed{Instance: s.Instance, Package: s.Package, Version: s.Version, Generated: true, Available: true})
		}
		to := plan.Results[0].Outcomes[0].Satisfier
		labels = append(labels, resolver.LabelOf(root.Instance, to.Namespace))
		input.Installed = append(input.Installed, at("team", name, name, "1.0.0", requires(*to, "dep")))
	}
	slices.Sort(labels)
	slices.Sort(want.RequiredBy)
	var d differences
	d.Unless(want.CreatedBy == nil || *want.CreatedBy == by, "created by %s", by)
	d.Unless(want.CreatedCount == nil || *want.CreatedCount == created, "created %d", created)
	d.Unless(want.RequiredBy == nil || slices.Equal(labels, want.RequiredBy), "required by %v", labels)
	return d.String(), ""
}

// contested: packages bring the same objects, one package after the other.
func contested(_ *testing.T, r row) (string, notApplicable) {
	in, want, ok := read[struct {
		// Owners are packages by the objects that they have.
		Owners   map[string]string
		Packages []struct {
			Name    string
			Objects []string
		}
	}, struct{ Installed []string }](r)
	if !ok || len(in.Packages) == 0 {
		return "", otherShape
	}
	table := claims.NewTable(func(objects.Owner) {})
	claim := func(name string, wanted ...string) error {
		owner := objects.Owner{OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Name: name}, UID: types.UID(name)}
		keys := []objects.Key{}
		for _, o := range wanted {
			keys = append(keys, objects.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: o})
		}
		return table.Claim(owner, keys)
	}
	for object, name := range in.Owners {
		if err := claim(name, object); err != nil {
			return err.Error(), ""
		}
	}
	got := []string{}
	for _, p := range in.Packages {
		if claim(p.Name, p.Objects...) == nil {
			got = append(got, p.Name)
		}
	}
	var d differences
	d.Unless(slices.Equal(got, want.Installed), "installed %v", got)
	return d.String(), ""
}

// checked: what a manifest may say of a dependency.
func checked(t *testing.T, r row) (string, notApplicable) {
	in, want, ok := read[struct {
		Package, CRD, Crossplane, Version string
		API                               *corev1alpha1.ProvidedAPI
	}, struct{ Valid *bool }](r)
	if !ok || want.Valid == nil {
		return "", otherShape
	}
	if in.Crossplane != "" && in.Package+in.CRD == "" && in.API == nil {
		return "", "what the engine has to be is a constraint of the package"
	}
	entry := map[string]any{"name": "dep"}
	if in.Package != "" {
		name := strings.NewReplacer("/", ".", "_", "-", ":", ".").Replace(strings.ToLower(in.Package))
		entry["package"] = map[string]any{"name": name, "version": in.Version}
	}
	if plural, group, _ := strings.Cut(in.CRD, "."); in.CRD != "" {
		in.API = &corev1alpha1.ProvidedAPI{APIVersion: group + "/v1", Kind: strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")}
	}
	if in.API != nil {
		entry["api"] = in.API
	}
	if in.Crossplane != "" {
		entry["crossplane"] = in.Crossplane
	}
	text, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	manifest := "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: shop}\nspec:\n  version: 1.0.0\n  scopes: [Namespaced]\n" +
		fmt.Sprintf("  dependencies: [%s]\n", text)
	_, err = loader.Validate(t.Context(), loader.Files{"manifest.yaml": []byte(manifest)})
	var d differences
	d.Unless(*want.Valid == (err == nil), "%v", err)
	return d.String(), ""
}
