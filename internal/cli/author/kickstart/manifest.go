package kickstart

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
)

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
