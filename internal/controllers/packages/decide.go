package packages

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// view is what a decision is made on.
type view struct {
	pkg corev1alpha1.GenericPackage
	// dep is the deployment of the Package's name, whatever its owner; nil where
	// there is none.
	dep corev1alpha1.GenericObjectDeployment
	// fingerprint is what would be rendered.
	fingerprint fingerprint
	inputs
	// attempt is the last one of this process to load, of whatever fingerprint;
	// nil where there is none.
	attempt *attempt
	// edited means that the template of the deployment is not the one that was made
	// for the Package.
	edited bool
	// restored is when the deployment was mended last: missing slices were made again,
	// or an edited template was written again.
	restored time.Time
	now      time.Time
}

// step is what to do next.
type step int

const (
	// stepSettle: what is unpacked is current. Settings are followed.
	stepSettle step = iota
	// stepPaused: the spec is not unpacked while the Package is paused.
	stepPaused
	// stepLoad: begin to load.
	stepLoad
	// stepWait: a load is going on, or a failed one is due later.
	stepWait
	// stepDeploy: write what was loaded.
	stepDeploy
	// stepRefuse: the package is wrong and stays so.
	stepRefuse
	// stepYield: the deployment of this name is not ours to write.
	stepYield
	// stepAwait: the deployment of this name is on its way out.
	stepAwait
	// stepGather: what the package is rendered from is not known yet.
	stepGather
)

// decide returns the next step, and why where the deployment stands in the way.
func decide(v view) (step, string) {
	if v.dep != nil {
		switch standing, why := standingOf(v.pkg, v.dep); standing {
		case foreign:
			return stepYield, why
		case leaving:
			return stepAwait, why
		}
	}
	if v.waiting || v.trouble != "" {
		return stepGather, v.trouble
	}
	reuse := compare(v.pkg, v.fingerprint)
	if reuse == unpackedCurrent && (v.dep == nil || v.moved != "" || restores(v) || mends(v) || ahead(v.dep, v.pkg)) {
		reuse = unpackedElsewhere
	}
	switch {
	case reuse == unpackedCurrent:
		return stepSettle, ""
	case v.pkg.PackageSpec().Paused:
		return stepPaused, ""
	}
	return byAttempt(v), ""
}

// ahead reports whether a deployment was given other content than the status of its
// Package records: the status follows later, or never where the process ended in
// between. What the status calls unpacked is not what is rolled out then.
func ahead(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage) bool {
	annotations, status := dep.GetAnnotations(), pkg.PackageStatus()
	hash, digest := annotations[corev1alpha1.UnpackedHashAnnotation], annotations[corev1alpha1.PackageDigestAnnotation]
	return hash != "" && hash != status.UnpackedHash ||
		digest != "" && status.Resolved != nil && digest != status.Resolved.Digest
}

// byAttempt returns the next step of a package that is to be unpacked.
func byAttempt(v view) step {
	a := v.attempt
	switch {
	case a == nil || a.fingerprint != v.fingerprint || a.moved != v.moved:
		return stepLoad
	case !a.done:
		return stepWait
	case !a.deployed.IsZero() && v.dep == nil:
		return stepLoad // what was deployed is gone, and what was loaded with it
	case a.err == nil:
		return stepDeploy
	case a.retryValue != retryValue(v.pkg):
		return stepLoad // without waiting for the end of the pause
	case a.turn != v.turn, a.around != "" && v.around != "" && a.around != v.around:
		return stepLoad // what it failed by may be gone
	case a.retry.IsZero():
		return stepRefuse
	case v.now.Before(a.retry):
		return stepWait
	}
	return stepLoad
}

// retryValue returns the retry annotation of a Package; one that is too long for the
// status is ignored.
func retryValue(pkg corev1alpha1.GenericPackage) string {
	value := pkg.GetAnnotations()[corev1alpha1.RetryAnnotation]
	if len(value) > limits.RetryValue {
		return ""
	}
	return value
}

// standing is how a deployment relates to the Package of its name.
type standing int

const (
	// own: the Package controls it.
	own standing = iota
	// left: it has no controller, and is what an orphaning deletion or a restore
	// from backup left behind of a Package of this name.
	left
	// foreign: of another owner.
	foreign
	// leaving: it is being deleted.
	leaving
)

// standingOf returns how a deployment relates to the Package of its name, and
// words for it where it is in the way.
func standingOf(pkg corev1alpha1.GenericPackage, dep corev1alpha1.GenericObjectDeployment) (standing, string) {
	kind := corev1alpha1.ScopeOf(dep.GetNamespace()).Kind("ObjectDeployment")
	controller := metav1.GetControllerOf(dep)
	switch {
	case dep.GetDeletionTimestamp() != nil:
		return leaving, fmt.Sprintf("Waiting for the former %s %s to be torn down.", kind, dep.GetName())
	case controller == nil && (dep.GetLabels()[corev1alpha1.PackageInstanceLabel] == pkg.GetName() ||
		dep.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation] != ""):
		return left, ""
	case controller == nil:
		return foreign, fmt.Sprintf(
			"%s %s exists and was not made for a package. Delete or rename it, or give this package another name.", kind, dep.GetName())
	case controller.UID == pkg.GetUID():
		return own, ""
	case namesake(controller, pkg):
		return left, "" // names are unique, so the other UID is gone
	}
	return foreign, fmt.Sprintf("%s %s is controlled by %s %s. Delete it there, or give this package another name.",
		kind, dep.GetName(), controller.Kind, controller.Name)
}

// namesake reports whether a reference names the Package, whatever the UID.
func namesake(ref *metav1.OwnerReference, pkg corev1alpha1.GenericPackage) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == corev1alpha1.GroupName && ref.Name == pkg.GetName() &&
		ref.Kind == corev1alpha1.ScopeOf(pkg.GetNamespace()).Kind("Package")
}
