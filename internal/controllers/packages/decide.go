package packages

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/background"
)

func (s *reconciliation) decide(context.Context) (step, string, error) {
	s.forbidden = s.Accounts.refusal(s.pkg)
	next, why := decide(s.view)
	return next, why, nil
}

// decide returns the next step, and why where something prevents the others.
func decide(v view) (step, string) {
	if v.dep != nil {
		switch ownership, why := ownershipOf(v.pkg, v.dep); ownership {
		case foreign:
			return stepYield, why
		case terminating:
			return stepAwait, why
		}
	}
	if v.forbidden != "" {
		return stepForbid, v.forbidden
	}
	if v.waiting || v.inputError != "" {
		return stepGather, v.inputError
	}
	reuse := compare(v.pkg, v.fingerprint)
	if reuse == unpackedCurrent && (v.dep == nil || v.newDigest != "" || repairsSlices(v) || repairsTemplate(v) || ahead(v.dep, v.pkg) ||
		rereads(v) || refusedBefore(v.pkg)) {
		reuse = unpackedElsewhere
	}
	switch {
	case reuse == unpackedCurrent:
		return stepSync, ""
	case v.pkg.PackageSpec().Paused:
		return stepPaused, ""
	case !v.choice.origin.loadable(), reuse == unpackedNever && v.choice.refused() && !v.choice.fits:
		return stepHold, ""
	}
	return byAttempt(v), ""
}

// ahead reports whether a deployment was given content that the status does not record, as after a crash in between.
func ahead(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage) bool {
	annotations, status := dep.GetAnnotations(), pkg.PackageStatus()
	hash, digest := annotations[corev1alpha1.UnpackedHashAnnotation], annotations[corev1alpha1.PackageDigestAnnotation]
	return hash != "" && hash != status.UnpackedHash ||
		digest != "" && status.Resolved != nil && digest != status.Resolved.Digest
}

// rereads reports whether a retry was requested for a Package that is rendered from ConfigMaps or Secrets, and what it loaded is
// not deployed yet: they may have changed before the request, of which their watches may not know yet.
func rereads(v view) bool {
	spec, retry, a := v.pkg.PackageSpec(), background.RetryValue(v.pkg), v.attempt
	if spec.Paused || !v.choice.origin.loadable() || retry == "" || len(sources.Of(spec, v.pkg.GetNamespace())) == 0 {
		return false
	}
	return retry != v.pkg.PackageStatus().LastHandledRetry || a != nil && a.In.fingerprint == v.fingerprint && a.RetryValue == retry
}

func byAttempt(v view) step {
	a := v.attempt
	switch {
	case a == nil || a.In.fingerprint != v.fingerprint || a.In.newDigest != v.newDigest:
		return stepLoad
	case !a.Done:
		return stepWait
	case !a.Out.deployed.IsZero() && v.dep == nil:
		return stepLoad // the deployment was deleted, and the content is forgotten
	case a.Err == nil && rereads(v) && a.RetryValue != background.RetryValue(v.pkg):
		return stepLoad
	case a.Err == nil:
		return stepDeploy
	case a.RetryValue != background.RetryValue(v.pkg), a.In.retryNumber != v.retryNumber,
		a.Out.dependencies != "" && v.dependencies != "" && a.Out.dependencies != v.dependencies:
		return stepLoad // at once: it may succeed now
	case a.Retry.IsZero():
		return stepRefuse
	case v.now.Before(a.Retry):
		return stepWait
	}
	return stepLoad
}

type ownership int

const (
	own         ownership = iota // the Package controls it
	left                         // without controller since an orphaning deletion of the Package, or a restore from backup
	foreign                      // of another owner
	terminating                  // it is being deleted
)

// ownershipOf returns how a deployment relates to the Package of its name, and why it cannot be written.
func ownershipOf(pkg corev1alpha1.GenericPackage, dep corev1alpha1.GenericObjectDeployment) (ownership, string) {
	kind := corev1alpha1.ScopeOf(dep.GetNamespace()).Kind("ObjectDeployment")
	controller := metav1.GetControllerOf(dep)
	switch {
	case dep.GetDeletionTimestamp() != nil:
		return terminating, fmt.Sprintf("Waiting for the former %s %s to be torn down.", kind, dep.GetName())
	case controller == nil && (dep.GetLabels()[corev1alpha1.PackageInstanceLabel] == pkg.GetName() ||
		dep.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation] != ""):
		return left, ""
	case controller == nil:
		return foreign, fmt.Sprintf(
			"%s %s exists and was not made for a package. Delete or rename it, or give this package another name.", kind, dep.GetName())
	case controller.UID == pkg.GetUID():
		return own, ""
	case sameName(controller, pkg):
		return left, "" // names are unique, so the object of the other UID was deleted
	}
	return foreign, fmt.Sprintf("%s %s is controlled by %s %s. Delete it there, or give this package another name.",
		kind, dep.GetName(), controller.Kind, controller.Name)
}

// sameName reports whether a reference names the Package, with any UID.
func sameName(ref *metav1.OwnerReference, pkg corev1alpha1.GenericPackage) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == corev1alpha1.GroupName && ref.Name == pkg.GetName() &&
		ref.Kind == corev1alpha1.ScopeOf(pkg.GetNamespace()).Kind("Package")
}
