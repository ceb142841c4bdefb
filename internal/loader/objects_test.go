package loader

import (
	"errors"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/kube/panics"
)

// TestPanicOverAFile checks that a panic in one of the goroutines that read files becomes an error
// of the package.
func TestPanicOverAFile(t *testing.T) {
	t.Parallel()
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    package-operator.run/condition: \"true\"\n    package-operator.run/phase: x\n"
	files := Files{"a.yaml": nil, "b.yaml": []byte(text), "c.yaml": []byte(text)}
	r := &reader{opts: &Options{}, condition: func(string) (bool, error) { panic(errors.New("a defect")) }}
	defer func() {
		caught, _ := recover().(*panics.Error)
		if caught == nil || !strings.HasPrefix(caught.Error(), "reading b.yaml failed by a defect") {
			t.Errorf("the caller gets %v", caught)
		}
	}()
	r.read(t.Context(), files)
}
