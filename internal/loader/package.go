package loader

import (
	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Package is a loaded package.
type Package struct {
	// Name by which installations of the same package are told: the one in the
	// manifest, and for a component shop/backend.
	Name string
	// Manifest of the package or of the component.
	Manifest *manifestsv1alpha1.PackageManifest
	// Lock is nil where the package has none.
	Lock *manifestsv1alpha1.PackageManifestLock
	// Phases that hold objects, in the order of the manifest; the objects are in
	// the order of their files and documents.
	Phases []corev1alpha1.ObjectSetTemplatePhase
	// Sources say where the objects stand: Sources[i][j] is that of
	// Phases[i].Objects[j].
	Sources [][]Source
	// Sensitive tells which objects hold values that may stand in Secrets only, in
	// the order of Sources; nil where the package is loaded without such values.
	// Every Secret counts, because a value may be in it in another form.
	Sensitive [][]bool
	// Probes of the manifest.
	Probes []corev1alpha1.ObjectSetProbe
	// Labels are the well-known labels of the package and its ObjectDeployment.
	Labels map[string]string
	// Config as it was admitted, with defaults and sensitive values.
	Config map[string]any
	// Warnings name what was dropped or is likely to fail, sorted.
	Warnings violation.Violations
}

// Source is where an object stands in its package.
type Source struct {
	// Path of the file, or of the template that it comes from.
	Path string
	// Document and Line count from 1; Line is 0 in the output of a template.
	Document, Line int
	// Object in words, such as "apps/v1 Deployment web".
	Object string
}

// Template returns what the ObjectDeployment rolls out.
func (p *Package) Template() corev1alpha1.ObjectSetTemplateSpec {
	return corev1alpha1.ObjectSetTemplateSpec{
		Phases: p.Phases, AvailabilityProbes: p.Probes, SuccessDelaySeconds: p.Manifest.Spec.SuccessDelaySeconds,
	}
}

// HoldsSensitive reports whether an object holds a value that may stand in Secrets
// only.
func (p *Package) HoldsSensitive(phase, object int) bool {
	return phase < len(p.Sensitive) && p.Sensitive[phase][object]
}

// Objects counts the objects of all phases.
func (p *Package) Objects() int {
	n := 0
	for _, phase := range p.Phases {
		n += len(phase.Objects)
	}
	return n
}
