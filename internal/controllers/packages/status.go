package packages

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/revisions"
)

// statusOf returns the status of a view within the size that objects can have.
func statusOf(v view) *corev1alpha1.PackageStatus {
	status := untruncatedStatus(v)
	var below []metav1.Condition
	if v.dep != nil {
		below = v.dep.ObjectDeploymentStatus().Conditions
	}
	statuswriter.Fit(status, v.pkg.GetGeneration(), below)
	return status
}

// untruncatedStatus returns the status with everything that there is to report. It starts from the
// present one, because some conditions stay as an earlier reconcile set them.
func untruncatedStatus(v view) *corev1alpha1.PackageStatus {
	status, generation, deleted := v.pkg.PackageStatus().DeepCopy(), v.pkg.GetGeneration(), v.pkg.GetDeletionTimestamp() != nil
	status.Load = recordOf(v)
	reported := observed(v) // once: it takes a digest of the template
	mirror(status, v, reported)
	if deleted || !v.loading() && v.step != stepGather {
		status.LastHandledRetry = background.RetryValue(v.pkg)
	}

	dependencies.ReportHold(status, v.pkg.GetGeneration(), v.heldBy)
	reportTarget(status, v)
	if !deleted {
		choice.Report(status, v.pkg, v.choice)
		v.required.Report(status, v.pkg.GetGeneration())
		reportImage(status, v)
		reportVerified(status, v)
		reportPermissions(status, v)
		if v.deployed && !reported {
			expect(status, generation)
		}
		if v.loading() && status.ObservedGeneration == generation && failedBefore(status) {
			return status // as before a retry or a restart, until the load has ended
		}
	}

	conditions.Kstatus(&status.Conditions, generation, kstatusOf(v, reported))
	status.ObservedGeneration = generation
	return status
}

// loading reports whether a load is in progress or about to start.
func (v view) loading() bool {
	return v.step == stepLoad || v.step == stepWait && v.attempt.Err == nil
}

// failedBefore reports whether the status already states that its package cannot be loaded.
func failedBefore(status *corev1alpha1.PackageStatus) bool {
	c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionUnpacked)
	return c != nil && c.Status == metav1.ConditionFalse
}

// reportImage reports the content: Unpacked, Invalid and the resolved image. Each step reports only
// its own part.
func reportImage(status *corev1alpha1.PackageStatus, v view) {
	conds := &status.Conditions
	set := func(typ string, holds bool, reason, message string) {
		conditions.Set(conds, v.pkg.GetGeneration(), typ, holds, reason, message)
	}
	refuse := func(reason, message string) {
		set(corev1alpha1.ConditionInvalid, true, reason, message)
		set(corev1alpha1.ConditionUnpacked, false, reason, "See the condition Invalid.")
	}

	switch v.step {
	case stepDeploy:
		// The status must not name content as unpacked before its deployment is written.
		if v.writeErr != nil {
			return
		}
		resolved := v.content.Resolved
		status.Resolved, status.UnpackedHash = &resolved, v.fingerprint.String()
		set(corev1alpha1.ConditionUnpacked, true, corev1alpha1.ReasonUnpackSuccess, unpackedMessage(v.content))
		conditions.Remove(conds, corev1alpha1.ConditionInvalid)
	case stepSync:
		conditions.Remove(conds, corev1alpha1.ConditionInvalid)
		if c := meta.FindStatusCondition(*conds, corev1alpha1.ConditionUnpacked); c != nil && c.Status == metav1.ConditionTrue {
			c.ObservedGeneration, c.Message = v.pkg.GetGeneration(), withLookupError(c.Message, v.lookupError)
			return
		}
		set(corev1alpha1.ConditionUnpacked, true, corev1alpha1.ReasonAlreadyUnpacked, "This spec was unpacked before.")
	case stepHold:
		conditions.Remove(conds, corev1alpha1.ConditionInvalid)
		if failedBefore(status) {
			set(corev1alpha1.ConditionUnpacked, false, v.choice.Reason, "See the condition Resolved.")
		}
	case stepDepend, stepPermit:
		conditions.Remove(conds, corev1alpha1.ConditionInvalid)
		if failedBefore(status) {
			conditions.Remove(conds, corev1alpha1.ConditionUnpacked)
		}
	case stepPaused:
		if v.dep == nil {
			set(corev1alpha1.ConditionPaused, true, corev1alpha1.ReasonPaused, "Nothing is unpacked while the package is paused.")
		}
	case stepWait:
		if !v.loading() {
			conditions.Remove(conds, corev1alpha1.ConditionInvalid)
			set(corev1alpha1.ConditionUnpacked, false, backOffReason(v.attempt.Err), v.attempt.Err.Error())
		}
	case stepRefuse:
		refuse(invalidReason(v.attempt.Err), problems(v.attempt.Err))
	case stepYield:
		refuse(corev1alpha1.ReasonCollisionDetected, v.why)
	case stepForbid:
		refuse(corev1alpha1.ReasonServiceAccountRequired, v.why)
	}
}

// backOffReason returns why a repeated attempt failed: by the memory of the manager, its end, the
// API server, or else by a registry.
func backOffReason(err error) string {
	var ended *interrupted
	if errors.As(err, &ended) {
		return corev1alpha1.ReasonLoadBackOff
	}
	if _, refused := imageconfigs.NotVerified(err); refused {
		return corev1alpha1.ReasonImageNotVerified
	}

	var exceeded *quota.Exceeded
	if errors.As(err, &exceeded) {
		return corev1alpha1.ReasonMemoryExceeded
	}

	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		return corev1alpha1.ReasonLoadError
	}
	return corev1alpha1.ReasonImagePullBackOff
}

// withLookupError replaces the line of a message about a tag that could not be resolved.
func withLookupError(message, lookupError string) string {
	const line = "\nWhether the tag has moved is not known: "
	message, _, _ = strings.Cut(message, line)
	if lookupError != "" {
		message += line + lookupError
	}
	return message
}

// unpackedMessage adds the warnings of the loader.
func unpackedMessage(loaded *load.Content) string {
	message := loadedMessage(loaded)
	if len(loaded.Warnings) > 0 {
		message += " Ignored:\n" + strings.Join(loaded.Warnings, "\n")
	}
	return message
}

// loadedMessage names the loaded content with its digest, and the mirror if there is one.
func loadedMessage(loaded *load.Content) string {
	from := loaded.Resolved
	name := from.Image
	if name == "" {
		name = fmt.Sprintf("%s %s of %s", from.PackageName, from.Version, from.Repository)
	}
	text := fmt.Sprintf("Loaded %s (%s)", name, from.Digest)
	if loaded.Mirror != "" {
		text += ", pulled from " + loaded.Mirror
	}
	return text + "."
}

// invalidReason returns the reason of an error of a load; an author can correct violations.
func invalidReason(err error) string {
	var wrong violation.Violations
	if errors.As(err, &wrong) {
		return wrong.ConditionReason()
	}
	return corev1alpha1.ReasonLoadError
}

// problems lists the problems of a package, one per line, as many as fit into a message.
func problems(err error) string {
	var wrong violation.Violations
	if !errors.As(err, &wrong) || len(err.Error()) <= limits.MessageBytes {
		return err.Error()
	}

	const more = "… and %d more problems; kubectl package validate shows all of them."
	text, room := "", limits.MessageBytes-len(more)-len("1000")
	for i, v := range wrong {
		line := v.String() + "\n"
		if i > 0 && len(text)+len(line) > room {
			return text + fmt.Sprintf(more, len(wrong)-i)
		}
		text += line
	}

	return text
}

// observed reports whether the deployment's status reflects the spec of the Package.
func observed(v view) bool {
	return deployment.Current(v.dep) && (v.step == stepSync &&
		conditions.IsTrueFor(v.pkg.PackageStatus().Conditions, corev1alpha1.ConditionReady, v.pkg.GetGeneration()) ||
		revisions.Describes(v.dep))
}

// mirror copies the status of the Package's deployment, but never as if it were about a spec that
// is loaded.
func mirror(status *corev1alpha1.PackageStatus, v view, observed bool) {
	conds, dep := &status.Conditions, v.dep
	if dep == nil || v.step == stepYield || v.step == stepAwait && !metav1.IsControlledBy(dep, v.pkg) {
		removeConditions(conds, func(c metav1.Condition) bool {
			return mirrored(c.Type) && (c.Type != corev1alpha1.ConditionPaused || v.step != stepPaused)
		})
		status.Phases, status.Blocking = nil, nil
		return
	}

	if !observed {
		return
	}

	from := dep.ObjectDeploymentStatus()
	status.Revision, status.Phases, status.Blocking = from.Revision, from.Phases, from.Blocking
	status.CurrentRevision, status.CurrentVersion, status.CurrentImage, status.WaitingRevision = from.CurrentRevision, from.CurrentVersion, from.CurrentImage, from.WaitingRevision
	var reported []metav1.Condition
	for _, c := range from.Conditions {
		if c.ObservedGeneration == dep.GetGeneration() && mirrored(c.Type) && (!atTimes(c.Type) || c.Status == metav1.ConditionTrue || alsoFalse(c.Type)) {
			reported = append(reported, c)
		}
	}

	removeConditions(conds, func(c metav1.Condition) bool {
		return (conditions.Mapped(c.Type) || atTimes(c.Type)) && meta.FindStatusCondition(reported, c.Type) == nil
	})
	for _, c := range reported {
		if !v.loading() {
			conditions.Copy(conds, v.pkg.GetGeneration(), c)
		} else if before := meta.FindStatusCondition(*conds, c.Type); before != nil {
			conditions.Copy(conds, before.ObservedGeneration, c) // of the spec that is rolled out
		}
	}
}

// mirrored reports whether a condition is copied from the deployment.
func mirrored(typ string) bool {
	return typ == corev1alpha1.ConditionAvailable || typ == corev1alpha1.ConditionProgressing || atTimes(typ) || conditions.Mapped(typ)
}

// atTimes reports whether a Package has conditions of a type only if its deployment has them.
// Except for the types of alsoFalse, they also have to be True there.
func atTimes(typ string) bool {
	switch typ {
	case corev1alpha1.ConditionPaused, corev1alpha1.ConditionAwaitingActivation, corev1alpha1.ConditionRolledBack, corev1alpha1.ConditionDrifted, corev1alpha1.ConditionObjectsKept, corev1alpha1.ConditionFieldsAdjusted,
		corev1alpha1.ConditionAuthorized, corev1alpha1.ConditionTeardownForbidden:
		return true
	}
	return false
}

// alsoFalse reports whether the value False of a condition of this type has a meaning, too.
func alsoFalse(typ string) bool {
	return typ == corev1alpha1.ConditionRolledBack || typ == corev1alpha1.ConditionAuthorized
}

// removeConditions removes conditions. Those that stay keep the time of their transition.
func removeConditions(conds *[]metav1.Condition, remove func(metav1.Condition) bool) {
	for _, c := range slices.Clone(*conds) {
		if remove(c) {
			conditions.Remove(conds, c.Type)
		}
	}
}

// expect sets conditions until the deployment's controller has observed a new template. During a
// first install they are the conditions that the controller reports next, which saves a write.
func expect(status *corev1alpha1.PackageStatus, generation int64) {
	conds := &status.Conditions
	conditions.Set(conds, generation, corev1alpha1.ConditionProgressing, true, corev1alpha1.ReasonProgressing,
		"No revision matches the template yet.")
	if meta.FindStatusCondition(*conds, corev1alpha1.ConditionAvailable) == nil {
		conditions.Set(conds, generation, corev1alpha1.ConditionAvailable, false, corev1alpha1.ReasonObjectSetUnready,
			"No revision is available yet.")
	}
}

// kstatusOf returns the state for the conditions Ready, Reconciling and Stalled. Refusals come
// before the deployment's own state, since the deployment does not know them.
func kstatusOf(v view, observed bool) conditions.State {
	if v.pkg.GetDeletionTimestamp() != nil {
		if len(v.heldBy) > 0 {
			return conditions.State{Reason: corev1alpha1.ReasonRequired, Message: dependencies.HeldMessage(v.heldBy)}
		}
		return teardownState(v.dep)
	}

	switch v.step {
	case stepYield:
		return conditions.State{Stalled: true, Reason: corev1alpha1.ReasonCollisionDetected, Message: v.why}
	case stepForbid, stepPermit:
		return conditions.State{Stalled: true, Reason: cmp.Or(v.refused.Reason, corev1alpha1.ReasonServiceAccountRequired), Message: v.why}
	case stepGather:
		return gatherState(v)
	case stepAwait:
		return conditions.State{Reason: corev1alpha1.ReasonProgressing, Message: v.why}
	}

	if v.choice.Refused() {
		message := v.choice.Message
		if v.step == stepHold && v.dep != nil {
			message += "; other changes of the spec wait until a version fits"
		}
		return conditions.State{Stalled: !v.choice.Pending, Reason: v.choice.Reason, Message: message}
	}

	switch v.step {
	case stepDepend:
		_, reason, message := v.required.Ready()
		return conditions.State{Stalled: v.required.Stalled(), Reason: reason, Message: message}
	case stepPaused:
		return conditions.State{Reason: corev1alpha1.ReasonPaused, Message: "The package is paused; this spec is unpacked when it is resumed."}
	case stepWait, stepLoad:
		if v.loading() {
			return conditions.State{Reason: corev1alpha1.ReasonProgressing, Message: "Loading " + v.choice.Origin.String() + "."}
		}
		if state, refused := imageconfigs.NotVerified(v.attempt.Err); refused {
			return state
		}
		var pull *registry.PullError
		stalled := errors.As(v.attempt.Err, &pull) && !pull.Temporary
		return conditions.State{Stalled: stalled, Reason: backOffReason(v.attempt.Err), Message: v.attempt.Err.Error()}
	case stepRefuse:
		return conditions.State{Stalled: true, Reason: invalidReason(v.attempt.Err), Message: problems(v.attempt.Err)}
	}

	if v.writeErr != nil {
		return conditions.State{Reason: corev1alpha1.ReasonApplyError, Message: v.writeErr.Error()}
	}
	if !observed && !failing(v.dep) {
		return conditions.State{Reason: corev1alpha1.ReasonProgressing, Message: awaitsDeployment}
	}
	return deploymentState(v.dep)
}

// failing reports whether the deployment reports for its present spec that an error or another
// cluster holds it up. That takes precedence over the status that describes the template.
func failing(dep corev1alpha1.GenericObjectDeployment) bool {
	if dep == nil {
		return false
	}
	ready := meta.FindStatusCondition(dep.ObjectDeploymentStatus().Conditions, corev1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionFalse && ready.ObservedGeneration == dep.GetGeneration() &&
		(ready.Reason == corev1alpha1.ReasonApplyError || ready.Reason == corev1alpha1.ReasonOtherCluster)
}

// gatherState is the state while the input of the rendering is not known.
func gatherState(v view) conditions.State {
	if away := v.targetState; away != nil && !away.Ready {
		return conditions.State{Stalled: away.Stalls(), Reason: away.Reason, Message: v.why}
	}
	return conditions.State{Stalled: v.inputReason != "", Reason: cmp.Or(v.inputReason, corev1alpha1.ReasonProgressing), Message: v.why}
}

// awaitsDeployment is the message while the deployment has not reported on its newest template.
const awaitsDeployment = "Waiting for the deployment to be rolled out."

// deploymentState returns the state that the deployment reports for its present generation.
func deploymentState(dep corev1alpha1.GenericObjectDeployment) conditions.State {
	from := dep.ObjectDeploymentStatus().Conditions
	ready := meta.FindStatusCondition(from, corev1alpha1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != dep.GetGeneration() {
		return conditions.State{Reason: corev1alpha1.ReasonProgressing, Message: awaitsDeployment}
	}
	return conditions.State{
		Ready:   ready.Status == metav1.ConditionTrue,
		Stalled: conditions.IsTrueFor(from, corev1alpha1.ConditionStalled, dep.GetGeneration()),
		Reason:  ready.Reason, Message: ready.Message,
	}
}

// teardownState returns the state of a package that is being deleted, with the deployment's reason
// if it does not progress.
func teardownState(dep corev1alpha1.GenericObjectDeployment) conditions.State {
	state := conditions.State{Reason: corev1alpha1.ReasonTearingDown, Message: "Objects are being removed in reverse order."}
	if dep != nil && dep.GetDeletionTimestamp() != nil && deployment.Current(dep) {
		if below := deploymentState(dep); !below.Ready && below.Message != "" {
			state.Stalled, state.Message = below.Stalled, below.Message
			if below.Reason == corev1alpha1.ReasonApplyError {
				state.Reason = below.Reason
			}
		}
	}
	return state
}
