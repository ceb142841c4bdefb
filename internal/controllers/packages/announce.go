package packages

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
)

// Reasons of events that are no reasons of conditions.
const (
	eventUnpacked    = "Unpacked"
	eventUnavailable = "Unavailable"
	eventIgnored     = "FieldsIgnored"
)

// noteBytes is the length of an event's note that the API server accepts.
const noteBytes = 1024

// happening is an event to record.
type happening struct {
	kind, reason, action, note string
}

// happenings returns the events of a transition from one status to the next. What
// was loaded and is available by the same status is one event: they are costly
// where many packages are installed.
func happenings(was, is *corev1alpha1.PackageStatus, o outcome) []happening {
	var all []happening
	loaded := ""
	if o.step == stepDeploy && o.content != nil && unpackedAnew(was, is) {
		loaded = fmt.Sprintf("Loaded %s (%s).", o.content.Resolved.Image, o.content.Resolved.Digest)
		if len(o.content.Warnings) > 0 {
			all = append(all, happening{corev1.EventTypeWarning, eventIgnored, "Unpack", strings.Join(o.content.Warnings, "\n")})
		}
	}
	if c, ok := became(was, is, corev1alpha1.ConditionInvalid, metav1.ConditionTrue); ok {
		all = append(all, happening{corev1.EventTypeWarning, c.Reason, "Unpack", c.Message})
	} else if c, ok := became(was, is, corev1alpha1.ConditionUnpacked, metav1.ConditionFalse); ok && c.Reason == corev1alpha1.ReasonImagePullBackOff {
		all = append(all, happening{corev1.EventTypeWarning, c.Reason, "Pull", c.Message})
	}
	if c, ok := became(was, is, corev1alpha1.ConditionDrifted, metav1.ConditionTrue); ok {
		all = append(all, happening{corev1.EventTypeWarning, c.Reason, "Watch", c.Message})
	}
	if c, ok := became(was, is, corev1alpha1.ConditionAvailable, metav1.ConditionTrue); ok {
		note := strings.TrimSpace(loaded + " " + c.Message)
		return append(all, happening{corev1.EventTypeNormal, corev1alpha1.ReasonAvailable, "Rollout", note})
	}
	if loaded != "" {
		all = append(all, happening{corev1.EventTypeNormal, eventUnpacked, "Unpack", loaded})
	}
	before := meta.IsStatusConditionTrue(was.Conditions, corev1alpha1.ConditionAvailable)
	if c, ok := became(was, is, corev1alpha1.ConditionAvailable, metav1.ConditionFalse); ok && before {
		all = append(all, happening{corev1.EventTypeWarning, eventUnavailable, "Rollout", c.Message})
	}
	return all
}

// unpackedAnew reports whether something else is unpacked: a tag may have moved.
func unpackedAnew(was, is *corev1alpha1.PackageStatus) bool {
	return was.UnpackedHash != is.UnpackedHash || digestOf(was) != digestOf(is)
}

func digestOf(status *corev1alpha1.PackageStatus) string {
	if status.Resolved == nil {
		return ""
	}
	return status.Resolved.Digest
}

// became returns a condition that has a value now and had another one, or
// another reason, before.
func became(was, is *corev1alpha1.PackageStatus, typ string, value metav1.ConditionStatus) (metav1.Condition, bool) {
	now, before := meta.FindStatusCondition(is.Conditions, typ), meta.FindStatusCondition(was.Conditions, typ)
	if now == nil || now.Status != value {
		return metav1.Condition{}, false
	}
	return *now, before == nil || before.Status != value || value == metav1.ConditionFalse && before.Reason != now.Reason
}

// announce records the events of a status that was written.
func (s *session) announce(was, is *corev1alpha1.PackageStatus, o outcome) {
	if s.pkg.GetDeletionTimestamp() != nil {
		return
	}
	for _, h := range happenings(was, is, o) {
		s.Events.Eventf(s.pkg, nil, h.kind, h.reason, h.action, "%s", cut(h.note))
	}
}

// cut shortens a note to what an event holds.
func cut(note string) string {
	note = conditions.Message(note)
	if len(note) <= noteBytes {
		return note
	}
	return strings.ToValidUTF8(note[:noteBytes-len("…")], "") + "…"
}
