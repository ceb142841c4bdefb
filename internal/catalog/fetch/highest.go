package fetch

import (
	"fmt"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

func highest(_ corev1alpha1.VersionSelection, _ []string) (string, error) {
	return "", fmt.Errorf("tags cannot be selected yet")
}
