package packages

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/limits"
)

// decide is the only place that sets the step of a reconcile. The decision itself is a pure
// function of the view.
func (s *reconciliation) decide(context.Context) (step, string, error) {
	s.forbidden = s.Accounts.refusal(s.pkg)
	next, why := decide(s.view)
	return next, why, nil
}

// decide returns the next step, and the reason if something prevents the others.
func decide(v view) (step, string) {
	if v.dep != nil {
		switch ownership, why := deployment.OwnershipOf(v.pkg, v.dep); ownership {
		case deployment.Foreign:
			return stepYield, why
		case deployment.Terminating:
			return stepAwait, why
		}
	}

	if v.forbidden != "" {
		return stepForbid, v.forbidden
	}
	if v.waiting || v.inputError != "" {
		return stepGather, v.inputError
	}

	reuse := load.Compare(v.pkg, v.fingerprint)
	if reuse == load.UnpackedCurrent && rendersAgain(v) {
		reuse = load.UnpackedElsewhere
	}

	switch {
	case reuse == load.UnpackedCurrent:
		return stepSync, ""
	case v.pkg.PackageSpec().Paused:
		return stepPaused, ""
	case !v.choice.Origin.Loadable(), reuse == load.UnpackedNever && v.choice.Refused() && !v.choice.Fits:
		return stepHold, ""
	}

	return byAttempt(v), ""
}

// rendersAgain reports whether content that was unpacked for the present spec is rendered once
// more.
func rendersAgain(v view) bool {
	switch {
	case v.dep == nil, v.newDigest != "":
		return true
	case (deployment.LacksSlices(v.dep) || v.drifted) && mayRepair(v), ahead(v.dep, v.pkg):
		return true
	}
	return rereads(v) || refusedBefore(v.pkg)
}

// ahead reports whether a deployment was given content that the status does not record, as after a
// crash in between.
func ahead(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage) bool {
	annotations, status := dep.GetAnnotations(), pkg.PackageStatus()
	hash, digest := annotations[corev1alpha1.UnpackedHashAnnotation], annotations[corev1alpha1.PackageDigestAnnotation]
	return hash != "" && hash != status.UnpackedHash ||
		digest != "" && status.Resolved != nil && digest != status.Resolved.Digest
}

// rereads reports whether a retry was requested for a Package that is rendered from ConfigMaps or
// Secrets and whose loaded content is not deployed yet. The sources might have changed before the
// request, and their watches might not have delivered that yet.
func rereads(v view) bool {
	spec, retry, a := v.pkg.PackageSpec(), background.RetryValue(v.pkg), v.attempt
	if spec.Paused || !v.choice.Origin.Loadable() || retry == "" || len(sources.RefsOf(spec, v.pkg.GetNamespace())) == 0 {
		return false
	}
	return retry != v.pkg.PackageStatus().LastHandledRetry || a != nil && a.In.Fingerprint == v.fingerprint && a.RetryValue == retry
}

// mayRepair reports whether changes by other clients can be undone now. The interval keeps two
// controllers from overwriting each other at full speed.
func mayRepair(v view) bool {
	return !v.pkg.PackageSpec().Paused && v.now.Sub(v.repaired) >= v.pace.Of(limits.RepairInterval)
}

// refusedBefore reports whether the image was refused since it was unpacked. It is verified again,
// even if the policies are back to their former state, because the condition Verified describes the
// refusal.
func refusedBefore(pkg corev1alpha1.GenericPackage) bool {
	c := meta.FindStatusCondition(pkg.PackageStatus().Conditions, corev1alpha1.ConditionUnpacked)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == corev1alpha1.ReasonImageNotVerified
}

// byAttempt returns the step by the state of the last load: load, wait, deploy its content, or
// report its error. A change of the input, a request to retry and a possible new outcome of the
// dependencies end the backoff.
func byAttempt(v view) step {
	a := v.attempt
	switch {
	case a == nil || a.In.Fingerprint != v.fingerprint || a.In.NewDigest != v.newDigest:
		return stepLoad
	case !a.Done:
		return stepWait
	case !a.Out.Deployed.IsZero() && v.dep == nil:
		return stepLoad // the deployment was deleted, and the content is forgotten
	case a.Err == nil && rereads(v) && a.RetryValue != background.RetryValue(v.pkg):
		return stepLoad
	case a.Err == nil:
		return stepDeploy
	case a.RetryValue != background.RetryValue(v.pkg), a.In.RetryNumber != v.retryNumber,
		a.Out.Dependencies != "" && v.dependencies != "" && a.Out.Dependencies != v.dependencies:
		return stepLoad // at once: it may succeed now
	case a.Retry.IsZero():
		return stepRefuse
	case v.now.Before(a.Retry):
		return stepWait
	}

	return stepLoad
}
