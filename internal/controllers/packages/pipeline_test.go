package packages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
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

// A large package waits for another one without its files in memory, and holds up no other.
func TestLargePackagesAreRenderedOneAtATime(t *testing.T) {
	t.Parallel()
	p := &Pipeline{rendering: queueing.NewLevels(limits.LoadsShort, limits.LoadShort, limits.LoadMedium)}
	half := make([]byte, limits.LargePackageBytes/2)
	large, small := loader.Files{"a": half, "b": half, "c": {'c'}}, loader.Files{"a": half, "b": half}
	done := func(context.Context) error { return nil }
	err := p.render(t.Context(), "team", 0, large, func(ctx context.Context) error {
		level, deferred := queueing.Deferred(p.render(ctx, "team", 0, large, done))
		if !deferred {
			t.Error("another large package is rendered beside it")
		}
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		if err := p.render(ctx, "team", level, large, done); !errors.Is(err, context.Canceled) {
			t.Errorf("repeated, it does not wait: %v", err)
		}
		return p.render(t.Context(), "team", 0, small, done)
	})
	if err != nil {
		t.Error(err)
	}
}
