package packages

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/revisions"
)

// outcome is what came of the step that was taken, for the status.
type outcome struct {
	step step
	// why explains a step that something stands in the way of.
	why string
	// content is what was deployed.
	content *Content
	// changed means that the template was written, and that the deployment has not
	// said anything about it yet.
	changed bool
	// writeErr is why the deployment could not be written.
	writeErr error
}

// statusOf returns the status that the Package should have.
func statusOf(v view, o outcome) *corev1alpha1.PackageStatus {
	status := wholeStatus(v, o)
	var below []metav1.Condition
	if v.dep != nil {
		below = v.dep.ObjectDeploymentStatus().Conditions
	}
	statuswriter.Fit(status, v.pkg.GetGeneration(), below)
	return status
}

// wholeStatus returns the status before truncation.
func wholeStatus(v view, o outcome) *corev1alpha1.PackageStatus {
	status := v.pkg.PackageStatus().DeepCopy()
	generation := v.pkg.GetGeneration()
	mirror(status, v, o)
	if v.pkg.GetDeletionTimestamp() != nil || !loading(v, o) && o.step != stepGather {
		status.LastHandledRetry = retryValue(v.pkg)
	}
	if v.pkg.GetDeletionTimestamp() != nil {
		status.ObservedGeneration = generation
		conditions.Kstatus(&status.Conditions, generation, leavingState(v.dep))
		return status
	}
	unpack(status, v, o)
	if o.changed {
		expect(status, generation)
	}
	if loading(v, o) && status.ObservedGeneration == generation && known(status) {
		return status // as it was before a retry or a restart, until the load has ended
	}
	conditions.Kstatus(&status.Conditions, generation, stateOf(v, o))
	status.ObservedGeneration = generation
	return status
}

// loading reports whether the outcome is that a load goes on.
func loading(v view, o outcome) bool {
	return o.step == stepLoad || o.step == stepWait && v.attempt.err == nil
}

// known reports whether a status says already that its package cannot be loaded.
func known(status *corev1alpha1.PackageStatus) bool {
	c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionUnpacked)
	return c != nil && c.Status == metav1.ConditionFalse
}

// unpack reports on the image.
func unpack(status *corev1alpha1.PackageStatus, v view, o outcome) {
	generation, conds := v.pkg.GetGeneration(), &status.Conditions
	refuse := func(reason, message string) {
		conditions.Set(conds, generation, corev1alpha1.ConditionInvalid, true, reason, message)
		conditions.Set(conds, generation, corev1alpha1.ConditionUnpacked, false, reason, "See the condition Invalid.")
	}
	switch o.step {
	case stepDeploy:
		if o.writeErr != nil {
			return
		}
		resolved := o.content.Resolved
		status.Resolved, status.UnpackedHash = &resolved, v.fingerprint.String()
		conditions.Set(conds, generation, corev1alpha1.ConditionUnpacked, true, corev1alpha1.ReasonUnpackSuccess, unpackedMessage(o.content))
		meta.RemoveStatusCondition(conds, corev1alpha1.ConditionInvalid)
	case stepSettle:
		meta.RemoveStatusCondition(conds, corev1alpha1.ConditionInvalid)
		if c := meta.FindStatusCondition(*conds, corev1alpha1.ConditionUnpacked); c != nil && c.Status == metav1.ConditionTrue {
			c.ObservedGeneration, c.Message = generation, withLookup(c.Message, v.lookup)
			return
		}
		conditions.Set(conds, generation, corev1alpha1.ConditionUnpacked, true, corev1alpha1.ReasonAlreadyUnpacked, "This spec was unpacked before.")
	case stepPaused:
		if v.dep == nil {
			conditions.Set(conds, generation, corev1alpha1.ConditionPaused, true, corev1alpha1.ReasonPaused, "Nothing is unpacked while the package is paused.")
		}
	case stepWait:
		if loading(v, o) {
			return
		}
		meta.RemoveStatusCondition(conds, corev1alpha1.ConditionInvalid)
		conditions.Set(conds, generation, corev1alpha1.ConditionUnpacked, false, backOffReason(v.attempt.err), v.attempt.err.Error())
	case stepRefuse:
		refuse(reasonOf(v.attempt.err), problems(v.attempt.err))
	case stepYield:
		refuse(corev1alpha1.ReasonCollisionDetected, o.why)
	}
}

// backOffReason is why an attempt that is repeated has failed: by a registry, or
// by the API server, which was asked for what the spec names.
func backOffReason(err error) string {
	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		return corev1alpha1.ReasonLoadError
	}
	return corev1alpha1.ReasonImagePullBackOff
}

// lookupFailed begins the line about a tag that could not be looked up.
const lookupFailed = "\nWhether the tag has moved is not known: "

// withLookup adds to a message why a tag could not be looked up; empty for no
// reason.
func withLookup(message, lookup string) string {
	message, _, _ = strings.Cut(message, lookupFailed)
	if lookup != "" {
		message += lookupFailed + lookup
	}
	return message
}

func unpackedMessage(content *Content) string {
	message := fmt.Sprintf("Loaded %s (%s).", content.Resolved.Image, content.Resolved.Digest)
	if len(content.Warnings) > 0 {
		message += " Ignored:\n" + strings.Join(content.Warnings, "\n")
	}
	return message
}

// reasonOf returns the reason of Invalid for what is wrong with a package.
func reasonOf(err error) string {
	var wrong violation.Violations
	if errors.As(err, &wrong) {
		return wrong.ConditionReason()
	}
	return corev1alpha1.ReasonLoadError
}

// problems lists what is wrong with a package, one problem a line, as many as a
// message holds.
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

// current reports whether the deployment's status describes its spec.
func current(dep corev1alpha1.GenericObjectDeployment) bool {
	return dep != nil && dep.ObjectDeploymentStatus().ObservedGeneration == dep.GetGeneration()
}

// observed reports whether the deployment's status reflects the current spec of the
// Package. That of a Package that is Ready at its generation, and has not been deployed
// since, does.
func observed(v view, o outcome) bool {
	if !current(v.dep) {
		return false
	}
	settled := o.step == stepSettle && conditions.IsTrueFor(v.pkg.PackageStatus().Conditions, corev1alpha1.ConditionReady, v.pkg.GetGeneration())
	return settled || revisions.Describes(v.dep)
}

// mirror copies the status of the deployment where that reflects its present spec and
// labels. Deployments that the Package does not own are ignored. While another spec of
// the Package is loaded, the status must not seem to be about that one.
func mirror(status *corev1alpha1.PackageStatus, v view, o outcome) {
	conds, generation, dep := &status.Conditions, v.pkg.GetGeneration(), v.dep
	if dep == nil || o.step == stepYield || o.step == stepAwait && !metav1.IsControlledBy(dep, v.pkg) {
		removeMapped(conds)
		meta.RemoveStatusCondition(conds, corev1alpha1.ConditionAvailable)
		meta.RemoveStatusCondition(conds, corev1alpha1.ConditionProgressing)
		meta.RemoveStatusCondition(conds, corev1alpha1.ConditionDrifted)
		if o.step != stepPaused {
			meta.RemoveStatusCondition(conds, corev1alpha1.ConditionPaused)
		}
		status.Phases, status.Blocking = nil, nil
		return
	}
	if !observed(v, o) {
		return
	}
	from := dep.ObjectDeploymentStatus()
	status.Revision, status.Phases, status.Blocking = from.Revision, from.Phases, from.Blocking
	removeMappedBut(conds, from.Conditions, dep.GetGeneration())
	for _, typ := range []string{corev1alpha1.ConditionPaused, corev1alpha1.ConditionDrifted} {
		if !conditions.IsTrueFor(from.Conditions, typ, dep.GetGeneration()) {
			meta.RemoveStatusCondition(conds, typ)
		}
	}
	for _, c := range from.Conditions {
		if c.ObservedGeneration != dep.GetGeneration() || !mirrored(c) {
			continue
		}
		if !loading(v, o) {
			conditions.Copy(conds, generation, c)
		} else if before := meta.FindStatusCondition(*conds, c.Type); before != nil {
			conditions.Copy(conds, before.ObservedGeneration, c) // of the spec that is rolled out
		}
	}
}

// mirrored reports whether a condition of the deployment is one of the Package.
func mirrored(c metav1.Condition) bool {
	switch c.Type {
	case corev1alpha1.ConditionAvailable, corev1alpha1.ConditionProgressing:
		return true
	case corev1alpha1.ConditionPaused, corev1alpha1.ConditionDrifted:
		return c.Status == metav1.ConditionTrue
	}
	return conditions.Mapped(c.Type)
}

func removeMapped(conds *[]metav1.Condition) { removeMappedBut(conds, nil, 0) }

// removeMappedBut removes mapped conditions that the source does not report. One
// that it does report keeps the time of its last transition.
func removeMappedBut(conds *[]metav1.Condition, source []metav1.Condition, generation int64) {
	var stale []string
	for _, c := range *conds {
		from := meta.FindStatusCondition(source, c.Type)
		if conditions.Mapped(c.Type) && (from == nil || from.ObservedGeneration != generation) {
			stale = append(stale, c.Type)
		}
	}
	for _, typ := range stale {
		meta.RemoveStatusCondition(conds, typ)
	}
}

// expect reports what is known right after the template was written, before the
// deployment's controller has observed it: the former revision's conditions must not
// seem to be those of the new one. During a first install these are the
// conditions that the deployment reports next, so that writing them here saves
// a write there.
func expect(status *corev1alpha1.PackageStatus, generation int64) {
	conds := &status.Conditions
	conditions.Set(conds, generation, corev1alpha1.ConditionProgressing, true, corev1alpha1.ReasonProgressing,
		"No revision matches the template yet.")
	if meta.FindStatusCondition(*conds, corev1alpha1.ConditionAvailable) == nil {
		conditions.Set(conds, generation, corev1alpha1.ConditionAvailable, false, corev1alpha1.ReasonObjectSetUnready,
			"No revision is available yet.")
	}
}

// stateOf returns what Ready, Reconciling and Stalled say.
func stateOf(v view, o outcome) conditions.State {
	switch o.step {
	case stepPaused:
		return conditions.State{Reason: corev1alpha1.ReasonPaused, Message: "The package is paused; this spec is unpacked when it is resumed."}
	case stepWait, stepLoad:
		if loading(v, o) {
			return conditions.State{Reason: corev1alpha1.ReasonProgressing, Message: "Loading " + v.pkg.PackageSpec().Image + "."}
		}
		var pull *registry.PullError
		stalled := errors.As(v.attempt.err, &pull) && !pull.Temporary
		return conditions.State{Stalled: stalled, Reason: backOffReason(v.attempt.err), Message: v.attempt.err.Error()}
	case stepRefuse:
		return conditions.State{Stalled: true, Reason: reasonOf(v.attempt.err), Message: problems(v.attempt.err)}
	case stepYield:
		return conditions.State{Stalled: true, Reason: corev1alpha1.ReasonCollisionDetected, Message: o.why}
	case stepAwait, stepGather:
		return conditions.State{Reason: corev1alpha1.ReasonProgressing, Message: o.why}
	}
	if o.writeErr != nil {
		return conditions.State{Reason: corev1alpha1.ReasonApplyError, Message: o.writeErr.Error()}
	}
	if !observed(v, o) {
		return conditions.State{Reason: corev1alpha1.ReasonProgressing, Message: awaitsDeployment}
	}
	return deploymentState(v.dep)
}

// awaitsDeployment is the message until the deployment's status is up to date.
const awaitsDeployment = "Waiting for the deployment to be rolled out."

// deploymentState is how the deployment is doing.
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

// leavingState is how the teardown is doing.
func leavingState(dep corev1alpha1.GenericObjectDeployment) conditions.State {
	state := conditions.State{Reason: corev1alpha1.ReasonTearingDown, Message: "Objects are being removed in reverse order."}
	if dep != nil && dep.GetDeletionTimestamp() != nil && current(dep) {
		if below := deploymentState(dep); !below.Ready && below.Message != "" {
			state.Stalled, state.Message = below.Stalled, below.Message
		}
	}
	return state
}
