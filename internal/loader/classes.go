package loader

import (
	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// elsewhere reports whether the agent of a class writes objects into an unknown cluster, so that
// rules about namespaces and scopes do not apply.
func elsewhere(class string) bool { return class != "" && class != corev1alpha1.PhaseClassDefault }

func (r *reader) setClass(phase, class string) {
	if class == "" {
		return
	}
	if r.classes == nil {
		r.classes = map[string]string{}
	}
	r.classes[phase] = class
}

// exposedToAgents returns objects with sensitive values in phases with a class. An ObjectSetPhase
// would contain them, and it is not a Secret.
func exposedToAgents(all []*object) violation.Violations {
	var problems violation.Violations
	for _, o := range all {
		if o.class != "" && o.sensitive {
			problems = append(problems, o.violation(violation.ReasonSecretExposed, "").Because(
				"Put it into a phase without a class, or set sensitive: false if the value is not a secret.",
				"phase %q has the class %q, and its ObjectSetPhase would hold a value that came from a Secret", o.phase, o.class))
		}
	}
	return problems
}
