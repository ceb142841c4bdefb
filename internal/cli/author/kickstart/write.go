package kickstart

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/loader"
)

// write creates a file for every object: <phase>/<name>.<kind>.yaml.
func (m *maker) write(files loader.Files, all []*object) error {
	for _, o := range all {
		// The phase is an annotation in the file, so that the author can change it.
		o.annotate(corev1alpha1.PhaseAnnotation, o.phase)
		data, templated, err := encode(o.value)
		if err != nil {
			return fmt.Errorf("write %s: %w", o, err)
		}
		p := o.phase + "/" + cmp.Or(fileName(cmp.Or(o.fileName, o.name())), "object") + "." + fileName(o.gvk.Kind) + ".yaml"
		if templated {
			p += ".gotmpl"
		}
		p = vacant(files, p)
		files[p] = data
	}

	return nil
}

// vacant returns a path for a new file, with a number if the path is taken. A file and its template
// render to one path.
func vacant(files loader.Files, p string) string {
	plain, template := strings.CutSuffix(p, ".gotmpl")
	base := strings.TrimSuffix(plain, ".yaml")
	for i := 2; files[plain] != nil || files[plain+".gotmpl"] != nil; i++ {
		plain = fmt.Sprintf("%s-%d.yaml", base, i)
	}
	if template {
		return plain + ".gotmpl"
	}
	return plain
}

// unsafeInNames matches the characters that are replaced in names of files.
var unsafeInNames = regexp.MustCompile(`[^a-z0-9.-]`)

// fileName returns a name without characters that some file systems refuse.
func fileName(name string) string {
	// Most file systems allow 255 bytes, with the ending and a number.
	const longest = 150
	name = unsafeInNames.ReplaceAllString(strings.ToLower(name), "-")
	return strings.Trim(name[:min(len(name), longest)], "-.")
}

// encode writes a value as YAML. The result is a template if it has an expression.
func encode(v any) (data []byte, templated bool, err error) {
	// token replaces expressions in the YAML, so it must not occur in the value.
	token := "expression"
	fields.Walk(v, func(_ map[string]any, key string, value any) {
		for strings.Contains(key, token) || strings.Contains(fields.Text(value), token) {
			token += "0"
		}
	})

	var expressions []string
	fields.Walk(v, func(parent map[string]any, key string, value any) {
		if e, ok := value.(expression); ok {
			name := token + "-" + strconv.Itoa(len(expressions)/2) + "-"
			parent[key] = name
			expressions = append(expressions, name, "{{ "+string(e)+" | toJson }}")
		}
	})

	// The YAML is in the style of kubectl.
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := cmp.Or(enc.Encode(v), enc.Close()); err != nil || len(expressions) == 0 {
		return out.Bytes(), false, err
	}

	// Braces of the input are text, and a template would evaluate them.
	return []byte(strings.NewReplacer(append(expressions, "{{", `{{ "{{" }}`)...).Replace(out.String())), true, nil
}

const (
	// manifestFile is the only file without an object.
	manifestFile = "manifest.yaml"
	// testCase is the name of the test case of a new package.
	testCase = "defaults"
)

// manifest writes manifest.yaml.
func (m *maker) manifest(phases []string, probes []any) ([]byte, error) {
	var list []any
	for _, phase := range phases {
		list = append(list, map[string]any{"name": phase})
	}

	name := m.opts.Name
	spec := map[string]any{
		// Each field that is empty is left out, so that the manifest stays short.
		"display": map[string]any{
			"name": name, "shortDescription": "Describe the package in one line.", "maintainers": []any{map[string]any{"name": name + " maintainers"}},
		},
		"scopes": []any{string(m.packageScope)}, "phases": list,
	}

	if v := m.version(); v != "" {
		spec["version"] = v
	} else {
		m.note("the input has no version for the package: set one with --version, or as spec.version of the manifest")
	}
	if len(probes) > 0 {
		spec["availabilityProbes"] = probes
	}
	if m.config.schema != nil {
		spec["config"] = map[string]any{"openAPIV3Schema": m.config.schema}
	}
	if len(m.images) > 0 {
		spec["images"] = m.images
	}

	meta := map[string]any{"name": name}
	if m.packageScope == corev1alpha1.ScopeNamespaced {
		meta["namespace"] = name
	}
	data, _, err := encode(map[string]any{
		"apiVersion": manifestsv1alpha1.GroupVersion.String(), "kind": manifestsv1alpha1.KindPackageManifest,
		"metadata": map[string]any{"name": name}, "spec": spec,
		"test": map[string]any{"template": []any{
			map[string]any{"name": testCase, "context": map[string]any{"package": map[string]any{"metadata": meta}}},
		}},
	})

	return data, err
}

// chartVersion matches the version at the end of the label helm.sh/chart, such as
// cert-manager-v1.15.0.
var chartVersion = regexp.MustCompile(`-v?(\d+\.\d+\.\d+.*)$`)

// version returns the version of the options, or the charts' if all objects name the same one.
func (m *maker) version() string {
	if m.opts.Version != "" {
		return m.opts.Version
	}

	found := map[string]bool{}
	for chart := range m.charts {
		match := chartVersion.FindStringSubmatch(chart)
		if match == nil {
			return ""
		}
		found[match[1]] = true
	}

	versions := slices.Collect(maps.Keys(found))
	if len(versions) != 1 {
		return ""
	}
	// A label cannot have a plus sign. Charts write _ instead.
	if _, err := semver.StrictNewVersion(versions[0]); err != nil {
		return ""
	}
	return versions[0]
}

// lock returns a lock with a zero digest for each image; nil if there are no images.
func (m *maker) lock() ([]byte, error) {
	if len(m.images) == 0 {
		return nil, nil
	}
	var images []any
	for _, i := range m.images {
		images = append(images, map[string]any{"name": fields.Get(i, "name"), "image": fields.Get(i, "image"), "digest": "sha256:" + strings.Repeat("0", 64)})
	}

	data, _, err := encode(map[string]any{
		"apiVersion": manifestsv1alpha1.GroupVersion.String(), "kind": manifestsv1alpha1.KindPackageManifestLock,
		"spec": map[string]any{"images": images},
	})
	return data, err
}
