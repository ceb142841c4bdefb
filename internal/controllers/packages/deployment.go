package packages

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/limits"
)

func (s *reconciliation) controls() bool { return s.dep != nil && metav1.IsControlledBy(s.dep, s.pkg) }

// depName names the deployment in messages.
func (s *reconciliation) depName() string {
	return corev1alpha1.ScopeOf(s.pkg.GetNamespace()).Kind("ObjectDeployment") + " " + s.pkg.GetName()
}

// errPackageChanged means that the Package is not in the state that is known: another read of the
// deployment does not help.
var errPackageChanged = errors.New("the Package was changed")

// retryOnConflict repeats a write after reading the deployment, whose status changes all the time
// during a rollout.
func (s *reconciliation) retryOnConflict(ctx context.Context, read func(context.Context) error, write func() error) error {
	for attempt := 1; ; attempt++ {
		err := write()
		if !apierrors.IsConflict(err) || errors.Is(err, errPackageChanged) || attempt == limits.ConflictAttempts {
			return err
		}
		if err := read(ctx); err != nil {
			return err
		}
	}
}

// readOwn reads the deployment from the API server, and returns a conflict if it must not be
// written any more.
func (s *reconciliation) readOwn(ctx context.Context) error {
	if err := s.readDeployment(ctx); err != nil {
		return err
	}
	if s.dep != nil {
		if ownership, _ := deployment.OwnershipOf(s.pkg, s.dep); ownership == deployment.Own || ownership == deployment.Left {
			return nil
		}
	}
	return apierrors.NewConflict(corev1alpha1.Resource("objectdeployments"), s.pkg.GetName(),
		fmt.Errorf("it was replaced or is being deleted"))
}

// readDeployment reads the deployment from the API server; nil also if its CRD was deleted.
func (s *reconciliation) readDeployment(ctx context.Context) error {
	scope := corev1alpha1.ScopeOf(s.pkg.GetNamespace())
	dep := scope.NewObjectDeployment()
	err := s.Reader.Get(ctx, keyOf(s.pkg), dep)
	if apply.IsAbsent(err) || err != nil && s.Unserved(corev1alpha1.GroupVersion.WithKind(scope.Kind("ObjectDeployment")).GroupKind()) {
		s.dep = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", s.depName(), err)
	}
	s.dep = dep
	return nil
}
