package kickstart

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
)

// TestCase is the name of the test case that every package begins with.
const TestCase = "defaults"

// manifest writes manifest.yaml, in the order in which it is read.
func (m *maker) manifest(phases []string, probes []any) ([]byte, error) {
	var parts []part
	if v := m.version(); v != "" {
		parts = append(parts, part{"version", v})
	} else {
		m.note("the input names no version of the package; state one by --version, or as spec.version of the manifest")
	}
	parts = append(parts, part{"display", map[string]any{
		"name": m.opts.Name, "shortDescription": "Says in one line what it is good for.", "maintainers": []any{map[string]any{"name": m.opts.Name + " maintainers"}},
	}})
	parts = append(parts, part{"scopes", texts(m.scopes)})
	var list []any
	for _, phase := range phases {
		list = append(list, map[string]any{"name": phase})
	}
	parts = append(parts, part{"phases", list})
	if len(probes) > 0 {
		parts = append(parts, part{"availabilityProbes", probes})
	}
	if m.config != nil {
		schema := m.config.openAPI()
		delete(schema, "default")
		parts = append(parts, part{"config", map[string]any{"openAPIV3Schema": schema}})
	}
	if len(m.images) > 0 {
		var images []any
		for _, i := range m.images {
			images = append(images, map[string]any{"name": i.name, "image": i.ref})
		}
		parts = append(parts, part{"images", images})
	}
	meta := map[string]any{"name": m.opts.Name}
	if m.scopes[0] == string(manifestsv1alpha1.PackageManifestScopeNamespaced) {
		meta["namespace"] = m.opts.Name
	}
	test := map[string]any{"template": []any{
		map[string]any{"name": TestCase, "context": map[string]any{"package": map[string]any{"metadata": meta}}},
	}}
	head, _, err := encode(map[string]any{
		"apiVersion": manifestsv1alpha1.GroupVersion.String(), "kind": manifestsv1alpha1.KindPackageManifest,
		"metadata": map[string]any{"name": m.opts.Name},
	})
	if err != nil {
		return nil, err
	}
	out := append(head, "spec:\n"...)
	for _, p := range parts {
		data, _, err := encode(map[string]any{p.key: p.value})
		if err != nil {
			return nil, err
		}
		out = append(out, indent(data)...)
	}
	tail, _, err := encode(map[string]any{"test": test})
	return append(out, tail...), err
}

// part is one field of the manifest's spec.
type part struct {
	key   string
	value any
}

var lineStart = regexp.MustCompile(`(?m)^(.)`)

// indent moves YAML without block scalars two columns in; those with them, too,
// as their indentation is relative.
func indent(data []byte) []byte { return lineStart.ReplaceAll(data, []byte("  $1")) }

func texts(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

var chartVersion = regexp.MustCompile(`-(\d+\.\d+\.\d+.*)$`)

// version is that of the options, or of the chart if all objects name the same one.
func (m *maker) version() string {
	if m.opts.Version != "" {
		return m.opts.Version
	}
	if len(m.charts) != 1 {
		return ""
	}
	match := chartVersion.FindStringSubmatch(slices.Collect(maps.Keys(m.charts))[0])
	if match == nil {
		return ""
	}
	// A label has no plus sign; charts write _ in its place.
	if _, err := semver.StrictNewVersion(match[1]); err != nil {
		return ""
	}
	return match[1]
}

// ProvisionalLock returns a lock of all images of a manifest with a zero digest; nil if
// it has none.
func ProvisionalLock(manifest []byte) ([]byte, error) {
	var m manifestsv1alpha1.PackageManifest
	if err := yaml.Unmarshal(manifest, &m); err != nil || len(m.Spec.Images) == 0 {
		return nil, err
	}
	var images []any
	for _, i := range m.Spec.Images {
		images = append(images, map[string]any{"name": i.Name, "image": i.Image, "digest": "sha256:" + strings.Repeat("0", 64)})
	}
	data, _, err := encode(map[string]any{
		"apiVersion": manifestsv1alpha1.GroupVersion.String(), "kind": manifestsv1alpha1.KindPackageManifestLock,
		"spec": map[string]any{"images": images},
	})
	return data, err
}
