package versions_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/testing/conformance"
)

type document = map[string]any

func carvel(kind, name string, spec document) document {
	return document{"apiVersion": "data.packaging.carvel.dev/v1alpha1", "kind": kind, "metadata": document{"name": name}, "spec": spec}
}

// carvelPackage is a version that can be installed.
func carvelPackage(refName, version string) document {
	return carvel("Package", refName+"."+version, document{
		"refName": refName, "version": version, "template": document{"spec": document{
			"fetch":  []any{document{"inline": document{"paths": document{"all.yaml": "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"}}}},
			"deploy": []any{document{"kapp": document{}}},
		}},
	})
}

func read(t *testing.T, documents ...document) (*repository.Content, error) {
	t.Helper()
	var text []byte
	for _, d := range documents {
		data, err := yaml.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, "---\n"...), data...)
	}
	return repository.Read(map[string][]byte{"packages/all.yml": text})
}

// validated: fields of the documents of a repository, in a document that is valid otherwise.
func validated(t *testing.T, r row) (string, notApplicable) {
	var in document
	if err := json.Unmarshal(r.Input, &in); err != nil {
		t.Fatal(err)
	}
	var want struct{ Valid bool }
	if err := json.Unmarshal(r.Expected, &want); err != nil {
		t.Fatal(err)
	}
	field, _ := in["field"].(string)
	kind, path, _ := strings.Cut(field, ".")
	var doc document
	switch {
	case strings.Contains(field, "kappController"):
		return "", "the version of another controller is not constrained here"
	case kind == "PackageMetadata":
		doc = carvel(kind, "shop.example.com", document{"displayName": "Shop"})
	case kind == "Package" && path == "metadata.name":
		doc = named(in)
	case kind == "Package":
		doc = carvelPackage("shop.example.com", "1.0.0")
	default:
		return "", notApplicable("documents of the kind " + kind + " are not read from repositories")
	}
	if path != "metadata.name" || kind != "Package" {
		set(doc, strings.Split(path, "."), in["value"])
	}
	if spec := doc["spec"].(document); kind == "Package" && path != "metadata.name" {
		refName, _ := spec["refName"].(string)
		version, _ := spec["version"].(string)
		doc["metadata"] = document{"name": refName + "." + version}
	}
	content, err := read(t, doc)
	valid := err == nil && len(content.Problems) == 0
	var d differences
	d.Unless(valid == want.Valid, "%v %+v", err, content)
	return d.String(), ""
}

// named is a Package whose name is judged alone: what else a row abbreviates is completed in the name, too.
func named(in document) document {
	name, _ := in["value"].(string)
	refName, _ := in["refName"].(string)
	version, _ := in["version"].(string)
	fullName, fullVersion := refName, version
	for strings.Count(fullName, ".") < 2 {
		fullName += ".example"
	}
	for strings.Count(fullVersion, ".") < 2 {
		fullVersion += ".0"
	}
	if rest, ok := strings.CutPrefix(name, refName+"."); ok {
		if rest == version {
			rest = fullVersion
		}
		name = fullName + "." + rest
	}
	doc := carvelPackage(fullName, fullVersion)
	doc["metadata"] = document{"name": name}
	return doc
}

func set(in document, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		next, ok := in[key].(document)
		if !ok {
			next = document{}
			in[key] = next
		}
		in = next
	}
	in[path[len(path)-1]] = value
}

type revisedOffer struct{ Revision, Content, Owner *string }

// revised: two repositories that offer one version; the first is older and has it.
func revised(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct{ Existing, Incoming revisedOffer }, struct {
		Outcome string
		Error   json.RawMessage
	}](t, r)
	owners := [2]string{"a-existing", "b-incoming"}
	if in.Incoming.Owner != nil && deref(in.Incoming.Owner) == deref(in.Existing.Owner) {
		owners[1] = owners[0]
	}
	version := func(o revisedOffer, owner string) corev1alpha1.AvailableVersion {
		return corev1alpha1.AvailableVersion{Version: "1.0.0", Image: "registry.example/" + strings.ToLower(deref(o.Content)), Revision: deref(o.Revision), Repository: owner}
	}
	offer := func(o revisedOffer, owner string, age time.Duration) repository.Offer {
		return repository.Offer{Repository: owner, Created: time.Unix(0, 0).Add(-age), Content: &repository.Content{Packages: []repository.Package{
			{Name: "shop.example.com", Versions: []corev1alpha1.AvailableVersion{version(o, "")}},
		}}}
	}
	all := []repository.Offer{offer(in.Incoming, owners[1], 0)}
	if owners[0] != owners[1] {
		all = append(all, offer(in.Existing, owners[0], time.Hour))
	}
	existing := []corev1alpha1.AvailablePackageSpec{{PackageName: "shop.example.com", Versions: []corev1alpha1.AvailableVersion{version(in.Existing, owners[0])}}}
	merged, conflicts := repository.Merge(all, existing)
	outcome := "none"
	if len(merged) == 1 && len(merged[0].Versions) == 1 {
		switch is := merged[0].Versions[0]; {
		case owners[0] == owners[1]:
			outcome = "update"
		case is.Repository == owners[1]:
			outcome = "take-over"
		case is.Repository == owners[0]:
			outcome = "keep-existing"
		}
	}
	var d differences
	failed := string(want.Error) != "" && string(want.Error) != "false" && string(want.Error) != "null"
	d.Unless(want.Outcome == "" || want.Outcome == outcome, "%s", outcome)
	d.Unless(!r.States("error") || failed == (len(conflicts) > 0), "conflicts %v", conflicts)
	return d.String(), ""
}

// listed: which versions a namespace chooses from. They are not copied, so that they are presented nowhere.
func listed(t *testing.T, r row) (string, notApplicable) {
	type published struct{ RefName, Version string }
	in, want := conformance.Decode[struct {
		ExcludeGlobal bool
		Namespace     string
		Global        []published
		Local         map[string][]published
	}, struct{ Visible []string }](t, r)
	specs := func(all []published) (out []corev1alpha1.AvailablePackageSpec) {
		for _, p := range all {
			out = append(out, corev1alpha1.AvailablePackageSpec{PackageName: p.RefName, Versions: []corev1alpha1.AvailableVersion{{Version: p.Version}}})
		}
		return out
	}
	got := []string{}
	for _, p := range slices.Concat(in.Global, in.Local[in.Namespace]) {
		for _, o := range offers.Candidates(p.RefName, specs(in.Local[in.Namespace]), specs(in.Global), func(string) bool { return !in.ExcludeGlobal }) {
			got = append(got, p.RefName+"."+o.Version.Version)
		}
	}
	slices.Sort(got)
	got = slices.Compact(got)
	slices.Sort(want.Visible)
	var d differences
	d.Unless(slices.Equal(got, want.Visible), "%v", got)
	return d.String(), ""
}

// repositoryFiltered: rows describe documents in words, of which the first is the kind.
func repositoryFiltered(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct{ Documents []string }, struct {
		Error     bool
		KeptKinds []string
	}](t, r)
	var documents []document
	for _, words := range in.Documents {
		var doc document
		switch kind, _, _ := strings.Cut(words, " "); kind {
		case "PackageMetadata":
			doc = carvel(kind, "shop.example.com", document{"displayName": "Shop"})
		case "Package":
			doc = carvelPackage("shop.example.com", "1.0.0")
		default:
			doc = document{"apiVersion": "apps/v1", "kind": kind, "metadata": document{"name": "a"}}
		}
		if strings.Contains(words, "unknown") {
			set(doc, []string{"unknown"}, true)
			set(doc, []string{"spec", "unknown"}, true)
		}
		documents = append(documents, doc)
	}
	content, err := read(t, documents...)
	kept := []string{}
	if err == nil {
		for _, p := range content.Packages {
			if p.Display != nil {
				kept = append(kept, "PackageMetadata")
			}
			if len(p.Versions) > 0 {
				kept = append(kept, "Package")
			}
		}
	}
	var d differences
	d.Unless((err != nil) == want.Error, "%v", err)
	d.Unless(slices.Equal(kept, want.KeptKinds), "kept %v of %+v", kept, content)
	return d.String(), ""
}
