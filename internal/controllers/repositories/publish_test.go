package repositories

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/kube/queueing"
)

// The same errors are kept at each try, in the order of the packages, regardless of races.
func TestFirstErrors(t *testing.T) {
	t.Parallel()
	conflict := apierrors.NewConflict(schema.GroupResource{}, "a", nil)
	errs := []error{nil, conflict}
	var want []string
	for i := range repositoryStatusNumber + 3 {
		text := fmt.Sprintf("write package %d: %s", i, strings.Repeat("no", 20-i))
		errs = append(errs, errors.New(text), nil)
		want = append(want, text)
	}
	if got := firstErrors(errs); got == nil || got.Error() != strings.Join(want[:repositoryStatusNumber], "\n") || queueing.Raced(got) {
		t.Errorf("got %v", got)
	}
	if got := firstErrors([]error{nil, conflict}); !queueing.Raced(got) {
		t.Errorf("got %v", got)
	}
	if got := firstErrors([]error{nil}); got != nil {
		t.Errorf("got %v", got)
	}
}
