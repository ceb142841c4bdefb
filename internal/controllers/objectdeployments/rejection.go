package objectdeployments

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
)

// rejectionBytes bounds the message of a rejection: a status has several.
const rejectionBytes = 256

// content identifies rejected content: a template, and the package that it was rendered from.
type content struct{ hash, version, digest string }

// contentOf returns that of a deployment or of a set, whose template has a hash.
func contentOf(obj metav1.Object, hash string) content {
	return content{hash, versionOf(obj), obj.GetAnnotations()[corev1alpha1.PackageDigestAnnotation]}
}

func hashOf(set corev1alpha1.GenericObjectSet) string {
	return set.GetAnnotations()[corev1alpha1.HashAnnotation]
}

// versionOf returns the version of a package as its manifest states it.
func versionOf(obj metav1.Object) string {
	return strings.ReplaceAll(obj.GetLabels()[corev1alpha1.PackageVersionLabel], "_", "+")
}

// rejections returns the rejected contents: a retry ends the rejections.
func (s *reconciliation) rejections() []corev1alpha1.RejectedContent {
	retry := background.RetryValue(s.deployment)
	var all []corev1alpha1.RejectedContent
	for _, r := range s.deployment.ObjectDeploymentStatus().Rejected {
		if r.Retry == retry {
			all = append(all, r)
		}
	}
	return all
}

func (s *reconciliation) rejected(c content) bool {
	return c.hash != "" && slices.ContainsFunc(s.rejections(), func(r corev1alpha1.RejectedContent) bool {
		return c == content{r.TemplateHash, r.Version, r.Digest}
	})
}

// reject records that the content of a set is not tried again.
func (s *reconciliation) reject(ctx context.Context, set corev1alpha1.GenericObjectSet, reason string) error {
	c := contentOf(set, hashOf(set))
	message := fmt.Sprintf("Revision %d was rejected.", set.ObjectSetSpec().Revision)
	if reason == corev1alpha1.ReasonProgressDeadlineExceeded {
		message = fmt.Sprintf("Revision %d missed its deadline.", set.ObjectSetSpec().Revision)
		if blocking := set.ObjectSetStatus().Blocking; len(blocking) > 0 {
			message = fmt.Sprintf("Revision %d missed its deadline: %s %s: %s", set.ObjectSetSpec().Revision, blocking[0].Kind, blocking[0].Name, blocking[0].Message)
		}
	}
	rejected := corev1alpha1.RejectedContent{
		TemplateHash: c.hash, Version: c.version, Digest: c.digest, Reason: reason, Message: conditions.Cut(conditions.Message(message), rejectionBytes),
		Released: s.releasedWith(set), Time: s.timestamp(), Retry: background.RetryValue(s.deployment),
	}
	all := append(s.rejections(), rejected)
	status := s.deployment.ObjectDeploymentStatus()
	before := status.Rejected
	err := s.patchStatus(ctx, s.deployment, func() { status.Rejected = all[max(0, len(all)-corev1alpha1.MaxRejectedContents):] })
	if err != nil {
		status.Rejected = before
	}
	return err
}

func rejectedByUser(set corev1alpha1.GenericObjectSet) bool {
	return set.GetAnnotations()[corev1alpha1.RejectedAnnotation] == "true" && set.GetDeletionTimestamp() == nil
}

// takeRejection records that a user rejected a set, and then takes the request off it.
func (s *reconciliation) takeRejection(ctx context.Context, set corev1alpha1.GenericObjectSet) error {
	if !s.rejected(contentOf(set, hashOf(set))) && hashOf(set) != "" {
		return s.reject(ctx, set, corev1alpha1.ReasonUser)
	}
	return s.patch(ctx, set, func() { setAnnotation(set, corev1alpha1.RejectedAnnotation, "") })
}

// stateful are kinds of objects whose deletion loses more than the package can bring again.
var stateful = []schema.GroupKind{{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, {Kind: "Namespace"}, {Kind: "PersistentVolumeClaim"}}

// leaveStateful marks the stateful objects of revisions that a rollback left: they stay, without a controller, where no
// other revision has them. Which revisions these are is on record in those that took over. A deletion of the deployment
// removes these objects as all others.
func (s *reconciliation) leaveStateful() {
	if s.deployment == nil {
		return
	}
	for _, set := range s.sets {
		rev := s.revisionOf(set)
		if rev == nil {
			continue
		}
		left := s.deployment.GetDeletionTimestamp() == nil && s.rolledBackFrom(set)
		for i := range rev.Phases {
			for _, d := range rev.Phases[i].Objects {
				d.Left = left && slices.Contains(stateful, d.Key.GroupKind())
			}
		}
	}
}

// rolledBackFrom reports whether a revision took over from that of a set in a rollback.
func (s *reconciliation) rolledBackFrom(set corev1alpha1.GenericObjectSet) bool {
	number := strconv.FormatInt(set.ObjectSetSpec().Revision, 10)
	return slices.ContainsFunc(s.sets, func(by corev1alpha1.GenericObjectSet) bool {
		return by.GetAnnotations()[corev1alpha1.RolledBackFromAnnotation] == number
	})
}

// givesWay reports whether a rollback leaves a set once its content is rejected.
func (s *reconciliation) givesWay(set corev1alpha1.GenericObjectSet) bool {
	succeeded := func(one corev1alpha1.GenericObjectSet) bool {
		return meta.IsStatusConditionTrue(*one.StatusConditions(), corev1alpha1.ConditionSucceeded)
	}
	return set == s.current && !succeeded(set) && set.GetAnnotations()[corev1alpha1.RolledBackFromAnnotation] == "" && slices.ContainsFunc(s.sets, succeeded)
}

// releasedWith names the stateful objects that only a set brought, if a rollback leaves it.
func (s *reconciliation) releasedWith(set corev1alpha1.GenericObjectSet) []string {
	rev := s.revisionOf(set)
	if rev == nil || !s.givesWay(set) {
		return nil
	}
	var names []string
	for i := range rev.Started() {
		for _, d := range rev.Phases[i].Objects {
			other := slices.ContainsFunc(s.rollout.Revisions(), func(r *engine.Revision) bool { return r != rev && r.Contains(d.Key) })
			if !other && slices.Contains(stateful, d.Key.GroupKind()) && len(names) < limits.BlockingObjects {
				names = append(names, d.Key.Kind+" "+d.Key.Name)
			}
		}
	}
	return names
}

// rollbackMessage says which revision was rolled back and why, and which one is in charge, with the reason of the rejection.
func (s *reconciliation) rollbackMessage() (reason, message string) {
	from := s.current.GetAnnotations()[corev1alpha1.RolledBackFromAnnotation]
	reason, message = corev1alpha1.ReasonProgressDeadlineExceeded, fmt.Sprintf("Revision %s missed its deadline", from)
	r := s.rejectionOf(from)
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
	return reason, message + fmt.Sprintf("Ask for other content, try this one again by %s, or set the spec to the revision in charge by kubectl package rollout undo %s",
		s.retryCommand(), s.nameInCommands())
}

// rejectionOf returns that of the revision with a number, or the last one where the revision is gone; nil for none.
func (s *reconciliation) rejectionOf(number string) *corev1alpha1.RejectedContent {
	all := s.rejections()
	for _, set := range s.sets {
		if strconv.FormatInt(set.ObjectSetSpec().Revision, 10) != number {
			continue
		}
		c := contentOf(set, hashOf(set))
		if i := slices.IndexFunc(all, func(r corev1alpha1.RejectedContent) bool { return c == content{r.TemplateHash, r.Version, r.Digest} }); i >= 0 {
			return &all[i]
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// setAnnotation sets an annotation of a set; empty takes it off.
func setAnnotation(set corev1alpha1.GenericObjectSet, key, value string) {
	annotations := map[string]string{}
	for k, v := range set.GetAnnotations() {
		if k != key {
			annotations[k] = v
		}
	}
	if value != "" {
		annotations[key] = value
	}
	set.SetAnnotations(annotations)
}
