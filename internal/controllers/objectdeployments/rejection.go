package objectdeployments

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/activation"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
)

// rejectionBytes bounds the message of a rejection: a status has several.
const rejectionBytes = 256

func (s *reconciliation) rejected(c activation.Content) bool {
	return activation.RejectionsOf(s.deployment).Has(c)
}

// reject records that the content of a set is not tried again.
func (s *reconciliation) reject(ctx context.Context, set corev1alpha1.GenericObjectSet, reason string) error {
	c := activation.OfSet(set)
	rejected := corev1alpha1.RejectedContent{
		TemplateHash: c.Hash, Version: c.Version, Digest: c.Digest, Reason: reason, Message: conditions.Cut(conditions.Message(activation.Rejected(set, reason)), rejectionBytes),
		Released: s.releasedWith(set), Time: metav1.Time{Time: s.Now().Truncate(time.Second)}, Retry: background.RetryValue(s.deployment),
	}

	all := append(activation.RejectionsOf(s.deployment), rejected)
	status := s.deployment.ObjectDeploymentStatus()
	before := status.Rejected
	err := s.patchStatus(ctx, s.deployment, func() { status.Rejected = all[max(0, len(all)-corev1alpha1.MaxRejectedContents):] })
	if err != nil {
		status.Rejected = before
	}

	return err
}

// takeRejection records that a user rejected a set, and then takes the request off it.
func (s *reconciliation) takeRejection(ctx context.Context, set corev1alpha1.GenericObjectSet) error {
	if c := activation.OfSet(set); c.Hash != "" && !s.rejected(c) {
		return s.reject(ctx, set, corev1alpha1.ReasonUser)
	}
	return s.annotate(ctx, set, corev1alpha1.RejectedAnnotation, "")
}

// leaveStateful marks the objects with data of revisions that a rollback left: they stay, without a
// controller, if no other revision has them. The revisions that took over have these revisions on
// record. A deletion of the deployment removes these objects like all others.
func (s *reconciliation) leaveStateful() {
	if s.deployment == nil {
		return
	}
	for _, set := range s.sets {
		rev := s.revisionOf(set)
		if rev == nil {
			continue
		}
		left := s.deployment.GetDeletionTimestamp() == nil && activation.RolledBackFrom(set, s.sets)
		for _, d := range rev.Objects() {
			d.Left = left && d.Key.KeepsData()
		}
	}
}

// givesWay reports whether a rollback leaves a set once its content is rejected.
func (s *reconciliation) givesWay(set corev1alpha1.GenericObjectSet) bool {
	return set == s.current && !succeeded(set) && set.GetAnnotations()[corev1alpha1.RolledBackFromAnnotation] == "" && slices.ContainsFunc(s.sets, succeeded)
}

// releasedWith names the objects with data that only a set brought, if a rollback leaves it.
func (s *reconciliation) releasedWith(set corev1alpha1.GenericObjectSet) []string {
	rev := s.revisionOf(set)
	if rev == nil || !s.givesWay(set) {
		return nil
	}

	var names []string
	for i := range rev.Started() {
		for _, d := range rev.Phases[i].Objects {
			other := slices.ContainsFunc(s.rollout.Revisions(), func(r *engine.Revision) bool { return r != rev && r.Contains(d.Key) })
			if !other && d.Key.KeepsData() && len(names) < limits.BlockingObjects {
				names = append(names, d.Key.Kind+" "+d.Key.Name)
			}
		}
	}

	return names
}

// rollbackMessage describes which revision was rolled back and why, and which one is in charge,
// with the reason of the rejection.
func (s *reconciliation) rollbackMessage() (reason, message string) {
	from := s.current.GetAnnotations()[corev1alpha1.RolledBackFromAnnotation]
	reason, message = corev1alpha1.ReasonProgressDeadlineExceeded, fmt.Sprintf("Revision %s missed its deadline", from)
	r := activation.RejectionsOf(s.deployment).Of(from, s.sets)
	if r != nil {
		if reason = r.Reason; reason == corev1alpha1.ReasonUser {
			message = fmt.Sprintf("Revision %s was rejected by a user", from)
		} else {
			message = cmp.Or(strings.TrimRight(r.Message, ". "), message)
		}
	}

	message += fmt.Sprintf(". Revision %d is in charge in its place. ", s.current.ObjectSetSpec().Revision)
	if r != nil && len(r.Released) > 0 {
		message += "Kept, without a controller: " + strings.Join(r.Released, ", ") + ". "
	}
	message += "Ask for other content, or try this one again by " + s.retryCommand()
	if s.packageOf() != nil {
		message += ", or set the spec to the revision in charge by kubectl package rollout undo " + s.nameInCommands()
	}
	return reason, message
}
