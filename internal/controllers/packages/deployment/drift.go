package deployment

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// templateVersion identifies a template and the digest that was recorded of it.
type templateVersion struct {
	uid        types.UID
	generation int64
	recorded   string
}

// templateVersionOf returns the key of a computed digest. The generation changes with each change
// of the spec.
func templateVersionOf(dep corev1alpha1.GenericObjectDeployment) templateVersion {
	return templateVersion{dep.GetUID(), dep.GetGeneration(), dep.GetAnnotations()[corev1alpha1.TemplateDigestAnnotation]}
}

// Template is the last known version of the template of a deployment, and whether that was edited.
type Template struct {
	version templateVersion
	drifted bool
}

// Drifted reports whether another client changed the template, or a crash left it incomplete.
func (m *Template) Drifted(dep corev1alpha1.GenericObjectDeployment) (bool, error) {
	if dep == nil {
		return false, nil
	}

	if version := templateVersionOf(dep); version != m.version {
		digest := ""
		if version.recorded != "" {
			var err error
			if digest, err = templateDigest(&dep.ObjectDeploymentSpec().Template.Spec); err != nil {
				return false, err
			}
		}
		m.version, m.drifted = version, version.recorded != digest
	}

	return m.drifted, nil
}

// Wrote records the response to a write of a whole template, however the API server changed it.
func (m *Template) Wrote(dep corev1alpha1.GenericObjectDeployment) {
	m.version, m.drifted = templateVersionOf(dep), false
}

// LacksSlices reports whether slices are missing that the deployment's template names.
func LacksSlices(dep corev1alpha1.GenericObjectDeployment) bool {
	if !Current(dep) {
		return false
	}
	c := meta.FindStatusCondition(dep.ObjectDeploymentStatus().Conditions, corev1alpha1.ConditionProgressing)
	return c != nil && c.Reason == corev1alpha1.ReasonSlicesMissing
}
