package packages

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
)

// view is what is known of one Package in one reconcile: the input of its decision and status.
type view struct {
	pkg corev1alpha1.GenericPackage
	// dep is the deployment of the Package's name, whatever its owner, or nil.
	dep         corev1alpha1.GenericObjectDeployment
	choice      choice
	fingerprint fingerprint
	inputs
	// attempt is the last one of this process to load, of any fingerprint, or nil.
	attempt *attempt
	// process identifies this process in records of loads.
	process string
	// drifted reports whether the deployment has another template than the one made for the Package.
	drifted  bool
	repaired time.Time
	now      time.Time
	pace     limits.Pace
	// forbidden is why the manager does not install the package as it is; empty if it does.
	forbidden string
	// required is nil where there are no dependencies, or nothing is known of them.
	required *dependencies.Plan
	// heldBy are the instances that the teardown of the Package waits for.
	heldBy []resolver.Instance
	outcome
}

type outcome struct {
	step    step
	why     string
	content *content
	// changed reports whether the template was written and the deployment has not reported on it yet.
	changed  bool
	writeErr error
}

type step int

const (
	stepSync   step = iota // what is unpacked is current; settings that need no rendering are copied
	stepPaused             // the spec is not unpacked while the Package is paused
	stepLoad               // start to load
	stepWait               // a load goes on, or a failed one is retried later
	stepDeploy             // write what was loaded
	stepRefuse             // the package is wrong and stays so
	stepYield              // the deployment of this name has another owner
	stepForbid             // the manager does not install the package as it is
	stepAwait              // the deployment of this name is terminating
	stepHold               // packageRef led to nothing that can be loaded; what is installed stays
	stepDepend             // what was loaded is not deployed before its dependencies are available
	stepGather             // what the package is rendered from is not known yet
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
		rereads(v)) {
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

// rereads reports whether a retry was requested and not handled yet for a Package that is rendered from ConfigMaps or Secrets: they
// may have changed before the request, of which their watches may not know yet.
func rereads(v view) bool {
	spec, retry := v.pkg.PackageSpec(), background.RetryValue(v.pkg)
	return !spec.Paused && v.choice.origin.loadable() && retry != "" && retry != v.pkg.PackageStatus().LastHandledRetry &&
		len(sources.Of(spec, v.pkg.GetNamespace())) > 0
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
