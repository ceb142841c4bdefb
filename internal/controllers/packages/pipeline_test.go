package packages

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// A remedy names the object that the user has.
func TestRemediesNameTheKind(t *testing.T) {
	t.Parallel()
	wrong := fmt.Errorf("load: %w", violation.Violations{
		{Reason: violation.ReasonConfigInvalid}, {Reason: violation.ReasonPatchInvalid}, {Reason: violation.ReasonTemplate, Remedy: "Drop it."},
	})
	for want, pkg := range map[string]corev1alpha1.GenericPackage{
		"Correct spec.config of the Package.":        newPackage(),
		"Correct spec.config of the ClusterPackage.": &corev1alpha1.ClusterPackage{},
	} {
		err := forKindOf(pkg, wrong)
		var found violation.Violations
		if !errors.As(err, &found) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Drop it.") {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if !strings.Contains(wrong.Error(), "spec.config of the Package.") {
		t.Errorf("the error was changed: %v", wrong)
	}
	for _, err := range []error{nil, errors.New("no route")} {
		if got := forKindOf(&corev1alpha1.ClusterPackage{}, err); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
