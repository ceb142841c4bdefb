package loader

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/presets"
	"lockstep.run/lockstep/internal/loader/violation"
)

// manifestFile is the file that makes a folder a package.
const manifestFile = "manifest.yaml"

// HasManifest reports whether files have the manifest of a package.
func HasManifest(files Files) bool {
	return files[manifestFile] != nil || files["manifest.yml"] != nil
}

// IsPlainManifest reports whether a file can have plain manifests or documents of a repository: YAML
// or JSON that is not hidden, nor in a hidden folder.
func IsPlainManifest(p string) bool {
	return !hidden(p) && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(p))
}

// Declared is the metadata that a repository provides for plain manifests, which have no manifest
// of their own.
type Declared struct {
	Dependencies  []corev1alpha1.Dependency
	UniqueInScope corev1alpha1.UniqueScope
}

// spec sets the fields of a manifest.
func (d Declared) spec(spec map[string]any) {
	if len(d.Dependencies) > 0 {
		spec["dependencies"] = d.Dependencies
	}
	if d.UniqueInScope != "" {
		spec["constraints"] = []any{map[string]any{"uniqueInScope": map[string]any{"scope": d.UniqueInScope}}}
	}
}

// ImagesLock lists the images of a bundle
// (https://carvel.dev/imgpkg/docs/latest/resources/#imgpkg-images).
const ImagesLock = ".imgpkg/images.yml"

// PlainManifests selects the files of an image that Plain reads, such as a bundle of manifests, and
// the lock of its images.
var PlainManifests = &archive.Selection{Keep: func(p string) bool { return p == ImagesLock || IsPlainManifest(p) }}

// Plain makes a package from plain manifests, for both scopes. It gets a manifest, phases by kinds
// for objects that state none, and the probes of package presets. There can be no objects if there
// are dependencies. The error is violation.Violations.
func Plain(name string, files Files, declared Declared) (Files, error) {
	p := plainSet{declared: declared, defined: map[schema.GroupKind]bool{}, aggregated: map[string]bool{}, kinds: map[schema.GroupKind]bool{}}
	for _, file := range slices.SortedFunc(maps.Keys(files), archive.ComparePaths) {
		if IsPlainManifest(file) {
			p.problems = append(p.problems, document.Each(file, files[file], p.document)...)
		}
	}

	if len(p.objects) == 0 && len(p.problems) == 0 && len(declared.Dependencies) == 0 {
		p.problems = violation.Violations{violation.Violation{Reason: violation.ReasonNoFiles}.
			Because("Offer a package with a manifest, or YAML files with Kubernetes objects.", "there is no object")}
	}
	if err := p.problems.Sorted().Err(); err != nil {
		return nil, err
	}

	return p.files(name)
}

// PlainScopes returns the scopes that plain manifests can be installed in, as far as their kinds
// determine it: only the cluster if a kind is known to be cluster-scoped, or an empty list for
// both. It ignores unreadable files.
func PlainScopes(files map[string]string) []corev1alpha1.Scope {
	p := plainSet{defined: map[schema.GroupKind]bool{}, aggregated: map[string]bool{}, kinds: map[schema.GroupKind]bool{}}
	// A package with a manifest states its scopes itself.
	if files[manifestFile] != "" || files["manifest.yml"] != "" {
		return nil
	}

	for file, text := range files {
		if IsPlainManifest(file) {
			_ = document.Each(file, []byte(text), p.document)
		}
	}

	for kind := range p.kinds {
		if namespaced, known := BuiltInScope(kind); known && !namespaced || presets.ClusterScoped(kind) {
			return []corev1alpha1.Scope{corev1alpha1.ScopeCluster}
		}
	}

	return nil
}

// plainSet collects the objects of plain manifests.
type plainSet struct {
	declared   Declared
	objects    []plainObject
	defined    map[schema.GroupKind]bool
	aggregated map[string]bool
	kinds      map[schema.GroupKind]bool
	problems   violation.Violations
}

// plainObject is one object with the file that it came from.
type plainObject struct {
	path string
	kind schema.GroupKind
	body map[string]any
}

func (p *plainSet) document(d *document.Document) { p.value(d, d.Value, true) }

// value adds an object, or the items of a list.
func (p *plainSet) value(d *document.Document, value any, lists bool) {
	body, ok := value.(map[string]any)
	apiVersion, _ := body["apiVersion"].(string)
	kind, _ := body["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if !ok || apiVersion == "" || kind == "" || err != nil {
		p.fail(d.At(violation.ReasonObjectInvalid, "").Because("", "the document is not an object: apiVersion %q, kind %q", apiVersion, kind))
		return
	}

	// Only one level is unpacked. A list in a list stays an object, which Load refuses.
	if items, isList := body["items"].([]any); isList && lists && strings.HasSuffix(kind, "List") {
		for _, item := range items {
			p.value(d, item, false)
		}
		return
	}

	if len(p.objects) >= limits.PackageObjects {
		p.fail(violation.Violation{Reason: violation.ReasonLimit, Path: d.Path}.
			Because("Split the package.", "more than %d objects", limits.PackageObjects))
		return
	}

	o := plainObject{path: d.Path, kind: gv.WithKind(kind).GroupKind(), body: body}
	p.objects, p.kinds[o.kind] = append(p.objects, o), true
	spec, _ := body["spec"].(map[string]any)
	group, _ := spec["group"].(string)
	switch o.kind {
	case crdKind:
		names, _ := spec["names"].(map[string]any)
		defined, _ := names["kind"].(string)
		p.defined[schema.GroupKind{Group: group, Kind: defined}] = true
	case apiServiceKind:
		p.aggregated[group] = spec["service"] != nil
	}
}

// fail adds a problem, up to the number that is shown.
func (p *plainSet) fail(v violation.Violation) {
	if len(p.problems) <= limits.Violations {
		p.problems = append(p.problems, v)
	}
}

// files writes the package.
func (p *plainSet) files(name string) (Files, error) {
	files, used, own := Files{}, map[string]bool{}, []string{}
	for _, o := range p.objects {
		phase := p.assign(o)
		if !used[phase] && presets.PhaseIndex(phase) < 0 {
			own = append(own, phase)
		}
		used[phase] = true
		text, err := yaml.Marshal(o.body)
		if err != nil {
			return nil, violation.Violations{violation.Violation{Reason: violation.ReasonObjectInvalid, Path: o.path}.Because("", "%v", err)}
		}
		// The folder keeps a file of the input from replacing the manifest or a helper of
		// templates.
		at := "objects/" + strings.TrimSuffix(o.path, path.Ext(o.path)) + ".yaml"
		if written := files[at]; written != nil {
			text = slices.Concat(written, []byte("---\n"), text)
		}
		files[at] = text
	}

	// The presets' phases come first. Phases that only the input names follow, in the order of the
	// files.
	phases := []any{}
	for _, phase := range append(presets.Ordered(used), own...) {
		phases = append(phases, map[string]any{"name": phase})
	}

	spec := map[string]any{
		"scopes": []any{manifestsv1alpha1.PackageManifestScopeCluster, manifestsv1alpha1.PackageManifestScopeNamespaced}, "phases": phases,
	}

	if probes, _ := presets.Probes(p.kinds); len(probes) > 0 {
		spec["availabilityProbes"] = probes
	}

	p.declared.spec(spec)
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": manifestsv1alpha1.GroupVersion.String(), "kind": manifestsv1alpha1.KindPackageManifest,
		"metadata": map[string]any{"name": name}, "spec": spec,
	})
	files[manifestFile] = bytes.TrimSpace(manifest)
	return files, err
}

// assign returns the phase of an object, which states it or gets it by its kind.
func (p *plainSet) assign(o plainObject) string {
	metadata, ok := o.body["metadata"].(map[string]any)
	if !ok {
		return presets.PhaseOther // every package's checks refuse it
	}

	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok && metadata["annotations"] != nil {
		return presets.PhaseOther
	}
	if phase, _ := annotations[corev1alpha1.PhaseAnnotation].(string); phase != "" {
		return phase
	}

	phase := presets.PhaseOf(o.kind)
	switch {
	// The kind is served by an API server that the package itself brings, which has to run first.
	case p.aggregated[o.kind.Group]:
		phase = presets.PhaseOther
	// The definition is in the same package, in an earlier phase.
	case p.defined[o.kind]:
		phase = presets.PhaseResources
	}

	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}

	annotations[corev1alpha1.PhaseAnnotation] = phase
	return phase
}
