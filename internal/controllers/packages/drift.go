package packages

import (
	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

func templateVersionOf(dep corev1alpha1.GenericObjectDeployment) templateVersion {
	return templateVersion{dep.GetUID(), dep.GetGeneration(), dep.GetAnnotations()[corev1alpha1.TemplateDigestAnnotation]}
}

// templateDrift reports whether another client changed the template, or a crash left it incomplete.
func (st *state) templateDrift(dep corev1alpha1.GenericObjectDeployment) (bool, error) {
	if dep == nil {
		return false, nil
	}
	if version := templateVersionOf(dep); version != st.template {
		digest := ""
		if version.recorded != "" {
			var err error
			if digest, err = templateDigest(&dep.ObjectDeploymentSpec().Template.Spec); err != nil {
				return false, err
			}
		}
		st.template, st.drifted = version, version.recorded != digest
	}
	return st.drifted, nil
}

// wroteTemplate records the response to a write of a whole template, whatever the API server made of it.
func (st *state) wroteTemplate(dep corev1alpha1.GenericObjectDeployment) {
	st.template, st.drifted = templateVersionOf(dep), false
}

// lacksSlices reports whether slices are missing that the deployment's template names.
func lacksSlices(dep corev1alpha1.GenericObjectDeployment) bool {
	if !current(dep) {
		return false
	}
	c := meta.FindStatusCondition(dep.ObjectDeploymentStatus().Conditions, corev1alpha1.ConditionProgressing)
	return c != nil && c.Reason == corev1alpha1.ReasonSlicesMissing
}
