package statuses

import (
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Argument names an owner in commands.
func Argument(kind, namespace, name string) string {
	arg := strings.ToLower(kind) + "/" + name
	if namespace != "" {
		arg += " --namespace " + namespace
	}
	return arg
}

// Adopt is the command that makes a Package the user's own that was installed as a dependency.
func Adopt(kind, namespace, name string) string {
	return "kubectl annotate " + Argument(kind, namespace, name) + " " + corev1alpha1.AdoptAnnotation + "=true"
}
