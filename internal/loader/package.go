package loader

import (
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

const announcedBytes = 8 << 10 // limit of provided APIs in the status of a Package, as JSON: a quarter of it

// Package is a loaded package.
type Package struct {
	// Name identifies the package; shop/backend for a component.
	Name string
	// CatalogName is the name that dependencies of other packages use: packageName of the manifest,
	// or else Name.
	CatalogName string
	// Dependencies are on packages and APIs, as written.
	Dependencies []corev1alpha1.Dependency
	// Provides are the sorted APIs of the package's CustomResourceDefinitions, in all served
	// versions, and of its manifest; at most limits.ProvidedAPIs.
	Provides []corev1alpha1.ProvidedAPI
	// Images are the sorted images that the objects name, as many as fit into the status of a
	// Package. OmittedImages is the number of the others.
	Images        []corev1alpha1.PackageImage
	OmittedImages int
	// UniqueInScope is the scope that can have only one installation of the package; empty if the
	// number is not limited.
	UniqueInScope corev1alpha1.UniqueScope

	Manifest *manifestsv1alpha1.PackageManifest
	Lock     *manifestsv1alpha1.PackageManifestLock
	// Phases have the objects in the order of the manifest, files and documents.
	Phases []corev1alpha1.ObjectSetTemplatePhase
	// Sources[i][j] is the place of Phases[i].Objects[j], without a problem.
	Sources [][]violation.Violation
	// Sensitive reports, in the order of Sources, which objects hold sensitive values; nil if there
	// are no such values.
	Sensitive [][]bool
	Probes    []corev1alpha1.ObjectSetProbe
	Labels    map[string]string
	// Config is the admitted configuration, with defaults and sensitive values.
	Config map[string]any
	// Warnings name dropped fields and likely failures, sorted.
	Warnings violation.Violations
}

// Template returns the template of the ObjectDeployment.
func (p *Package) Template() corev1alpha1.ObjectSetTemplateSpec {
	return corev1alpha1.ObjectSetTemplateSpec{
		Phases: p.Phases, AvailabilityProbes: p.Probes, SuccessDelaySeconds: p.Manifest.Spec.SuccessDelaySeconds,
	}
}

// Announced are the first APIs that the package provides, as many as fit into a status. The others
// can still be found: the APIs of an installed package are served.
func (p *Package) Announced() []corev1alpha1.ProvidedAPI {
	size := 0
	for i, api := range p.Provides {
		if size += len(`{"apiVersion":"","kind":""},`) + len(api.APIVersion) + len(api.Kind); size > announcedBytes {
			return p.Provides[:i:i]
		}
	}
	return p.Provides
}

// HoldsSensitive reports whether an object holds sensitive values.
func (p *Package) HoldsSensitive(phase, object int) bool {
	return phase < len(p.Sensitive) && p.Sensitive[phase][object]
}

// Describe reads only the manifest. Its error is violation.Violations.
func Describe(files Files) (*manifestsv1alpha1.PackageManifest, error) {
	u := readUnit(files, "")
	if err := u.problems.Err(); err != nil {
		return nil, err
	}
	return u.result.Manifest, nil
}

// Description returns the long description of a package, by default its README.md. The text is not
// trusted.
func Description(m *manifestsv1alpha1.PackageManifest, files Files) string {
	if d := m.Spec.Display; d != nil && d.LongDescription != "" {
		return d.LongDescription
	}
	// The cut can split a character, and an author can store other bytes than UTF-8.
	text := files["README.md"]
	return strings.ToValidUTF8(string(text[:min(len(text), limits.ProseBytes)]), "")
}
