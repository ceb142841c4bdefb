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
	"lockstep.run/lockstep/test/conformance"
	"lockstep.run/lockstep/test/require"
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
		require.NoError(t, err)
		text = append(append(text, "---\n"...), data...)
	}
	return repository.Read(map[string][]byte{"packages/all.yml": text})
}

// validated sets fields of repository documents in an otherwise valid document.
func validated(t *testing.T, in struct {
	Field, RefName, Version string
	Value                   any
}, want *expectation,
) {
	kind, path, _ := strings.Cut(in.Field, ".")
	var doc document
	switch {
	case kind == "PackageMetadata":
		doc = carvel(kind, "shop.example.com", document{"displayName": "Shop"})
	case in.Field == "Package.metadata.name":
		name, _ := in.Value.(string)
		doc = named(name, in.RefName, in.Version)
	default:
		doc = carvelPackage("shop.example.com", "1.0.0")
		doc["kind"] = kind
	}

	if in.Field != "Package.metadata.name" {
		set(doc, strings.Split(path, "."), in.Value)
	}

	if spec := doc["spec"].(document); kind == "Package" && path != "metadata.name" {
		refName, _ := spec["refName"].(string)
		version, _ := spec["version"].(string)
		doc["metadata"] = document{"name": refName + "." + version}
	}

	content, err := read(t, doc)
	valid := err == nil && len(content.Problems) == 0
	if strings.Contains(path, "kappController") { // the version is offered, with a note
		want.Otherwise(conformance.OtherController)
		valid = err == nil && len(content.Packages) > 0
	}

	want.Is("valid", valid, err, content)
	want.Fails("errorType", !valid, err, content)
}

// named is a Package to judge only by its name. Other abbreviations of a row are expanded in the
// name as well.
func named(name, refName, version string) document {
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

type revisedOffer struct{ Revision, Content, Owner string }

// offer is the offer of a repository of a given age.
func (o revisedOffer) offer(repositoryName string, age time.Duration) repository.Offer {
	v := corev1alpha1.AvailableVersion{Version: "1.0.0", Image: "registry.example/" + strings.ToLower(o.Content), Revision: o.Revision}
	return repository.Offer{Repository: repositoryName, Created: time.Unix(0, 0).Add(-age), Content: &repository.Content{Packages: []repository.Package{
		{Name: "shop.example.com", Versions: []corev1alpha1.AvailableVersion{v}},
	}}}
}

// revised has two repositories that offer one version, or a repository whose content changes. The
// first repository is older, and owns the version.
func revised(_ *testing.T, in struct{ Existing, Incoming revisedOffer }, want *expectation) {
	const first, second = "a-existing", "b-incoming"
	before, _ := repository.Merge([]repository.Offer{in.Existing.offer(first, time.Hour)}, nil)
	update := in.Incoming.Owner != "" && in.Incoming.Owner == in.Existing.Owner
	offered := []repository.Offer{in.Incoming.offer(second, 0), in.Existing.offer(first, time.Hour)}
	if update {
		offered = []repository.Offer{in.Incoming.offer(first, time.Hour)}
	}

	merged, conflicts := repository.Merge(offered, before)
	outcome := "none"
	if len(merged) == 1 && len(merged[0].Versions) == 1 {
		is, was := merged[0].Versions[0], before[0].Versions[0]
		outcome = map[string]string{second: "take-over", first: "keep-existing"}[is.Repository]
		if update && is.Image != was.Image {
			outcome = "update"
		}
	}

	want.Is("outcome", outcome)
	want.Fails("error", len(conflicts) > 0, conflicts)
}

// published is a version. The text distinguishes versions of the same name in rows.
type published struct{ RefName, Version, Marker string }

// listed checks which versions a namespace chooses from. They are not copied: cluster-wide versions
// are in no namespace.
func listed(_ *testing.T, in struct {
	ExcludeGlobal bool
	Namespace     string
	Global        []published
	Local         map[string][]published
}, want *expectation,
) {
	specs := func(all []published) (out []corev1alpha1.AvailablePackageSpec) {
		for _, p := range all {
			v := corev1alpha1.AvailableVersion{Version: p.Version, Image: p.Marker}
			out = append(out, corev1alpha1.AvailablePackageSpec{PackageName: p.RefName, Versions: []corev1alpha1.AvailableVersion{v}})
		}
		return out
	}

	visible, markers, namespaces := []string{}, []string{}, []string{}
	seen := map[string]bool{}
	for _, p := range slices.Concat(in.Local[in.Namespace], in.Global) {
		if seen[p.RefName] {
			continue
		}
		seen[p.RefName] = true
		for _, o := range offers.Candidates(p.RefName, specs(in.Local[in.Namespace]), specs(in.Global), func(string) bool { return !in.ExcludeGlobal }) {
			visible, markers = append(visible, p.RefName+"."+o.Version.Version), append(markers, o.Version.Image)
			namespaces = append(namespaces, map[corev1alpha1.Scope]string{corev1alpha1.ScopeNamespaced: in.Namespace}[o.Scope])
		}
	}

	if len(in.Global) > 0 {
		want.Otherwise(conformance.NotCopied, "presentedNamespace")
	}

	want.Set("visible", visible)
	want.Set("visibleMarkers", markers)
	conformance.Holds(want, "presentedNamespace", func(namespace string) bool {
		return !slices.ContainsFunc(namespaces, func(other string) bool { return other != namespace })
	}, namespaces)
}

// unknownField is a field that no document has.
const unknownField = "unknownFieldOfARow"

// repositoryFiltered has rows that describe documents in words. The first word is the kind.
func repositoryFiltered(t *testing.T, in struct{ Documents []string }, want *expectation) {
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
			set(doc, []string{unknownField}, true)
			set(doc, []string{"spec", unknownField}, true)
			set(doc, []string{"spec", "template", unknownField}, true)
		}
		documents = append(documents, doc)
	}

	content, err := read(t, documents...)
	kept, unknown := []string{}, false
	if err == nil {
		for _, p := range content.Packages {
			if p.Display != nil {
				kept = append(kept, "PackageMetadata")
			}
			if len(p.Versions) > 0 {
				kept = append(kept, "Package")
			}
		}
		packages, errMarshal := json.Marshal(content.Packages)
		if errMarshal != nil {
			t.Fatal(errMarshal)
		}
		unknown = strings.Contains(string(packages), unknownField+`":`)
	}

	want.Fails("error", err != nil, err)
	want.Is("keptKinds", kept, content)
	want.Is("unknownFieldsKept", unknown, content)
}
