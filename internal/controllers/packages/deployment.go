package packages

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/limits"
)

type ownership int

const (
	ownershipOwn         ownership = iota // the Package controls it
	ownershipLeft                         // without controller since an orphaning deletion of the Package, or a restore from backup
	ownershipForeign                      // of another owner
	ownershipTerminating                  // it is being deleted
)

// ownershipOf returns how a deployment relates to the Package of its name, and why it cannot be written.
func ownershipOf(pkg corev1alpha1.GenericPackage, dep corev1alpha1.GenericObjectDeployment) (ownership, string) {
	kind := corev1alpha1.ScopeOf(dep.GetNamespace()).Kind("ObjectDeployment")
	controller := metav1.GetControllerOf(dep)
	switch {
	case dep.GetDeletionTimestamp() != nil:
		return ownershipTerminating, fmt.Sprintf("Waiting for the former %s %s to be torn down.", kind, dep.GetName())
	case controller == nil && (dep.GetLabels()[corev1alpha1.PackageInstanceLabel] == pkg.GetName() ||
		dep.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation] != ""):
		return ownershipLeft, ""
	case controller == nil:
		return ownershipForeign, fmt.Sprintf(
			"%s %s exists and was not made for a package. Delete or rename it, or give this package another name.", kind, dep.GetName())
	case controller.UID == pkg.GetUID():
		return ownershipOwn, ""
	case sameName(controller, pkg):
		return ownershipLeft, "" // names are unique, so the object of the other UID was deleted
	}
	return ownershipForeign, fmt.Sprintf("%s %s is controlled by %s %s. Delete it there, or give this package another name.",
		kind, dep.GetName(), controller.Kind, controller.Name)
}

// sameName reports whether a reference names the Package, with any UID.
func sameName(ref *metav1.OwnerReference, pkg corev1alpha1.GenericPackage) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == corev1alpha1.GroupName && ref.Name == pkg.GetName() &&
		ref.Kind == corev1alpha1.ScopeOf(pkg.GetNamespace()).Kind("Package")
}

func (s *reconciliation) controls() bool { return s.dep != nil && metav1.IsControlledBy(s.dep, s.pkg) }

func (s *reconciliation) depName() string {
	return corev1alpha1.ScopeOf(s.pkg.GetNamespace()).Kind("ObjectDeployment") + " " + s.pkg.GetName()
}

func current(dep corev1alpha1.GenericObjectDeployment) bool {
	return dep != nil && dep.ObjectDeploymentStatus().ObservedGeneration == dep.GetGeneration()
}

// errPackageChanged means that the Package is not in the state that is known: another read of the deployment does not help.
var errPackageChanged = errors.New("the Package was changed")

// retryOnConflict repeats a write after reading the deployment, whose status changes all the time during a rollout.
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

// readOwn reads the deployment from the API server, and returns a conflict where it may not be written any more.
func (s *reconciliation) readOwn(ctx context.Context) error {
	if err := s.readDeployment(ctx); err != nil {
		return err
	}
	if s.dep != nil {
		if ownership, _ := ownershipOf(s.pkg, s.dep); ownership == ownershipOwn || ownership == ownershipLeft {
			return nil
		}
	}
	return apierrors.NewConflict(corev1alpha1.Resource("objectdeployments"), s.pkg.GetName(),
		fmt.Errorf("it was replaced or is being deleted"))
}

// readDeployment reads the deployment from the API server; nil also where its CRD was deleted.
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
