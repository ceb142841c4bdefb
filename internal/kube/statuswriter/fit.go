package statuswriter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
)

// Fit truncates a status that is larger than limits.StatusBytes. It removes images of a
// package first, and counts them in the status itself. Then follow the timeline, which no
// other part depends on, messages, status.controllerOf, mapped conditions, messages again,
// and blocking objects. Phases, Jobs and dependencies stay: they are records, and have limits
// of their own.
//
// The condition Truncated names the removed parts, including more, the parts that the caller
// removed already. It leaves out the timeline, because its lack alone does not justify a
// write. If no part was removed, the condition is copied from below, the conditions that the
// status mirrors, or removed.
func Fit(status any, generation int64, below []metav1.Condition, more ...string) {
	s := partsOf(status)
	if s == nil {
		return
	}

	forgetTimeline := func() string {
		if s.timeline != nil {
			*s.timeline = nil
		}
		return ""
	}
	for _, cut := range []func() string{
		s.forgetImages, forgetTimeline, func() string { return s.shorten(1024) },
		s.forgetControlled, s.forgetMapped, func() string { return s.shorten(128) }, s.forgetBlocking,
	} {
		if s.fits() {
			break
		}
		if what := cut(); what != "" {
			more = append(more, what)
		}
	}

	if len(more) == 0 {
		if c := meta.FindStatusCondition(below, corev1alpha1.ConditionTruncated); c != nil {
			conditions.Copy(s.conditions, generation, *c)
		} else {
			conditions.Remove(s.conditions, corev1alpha1.ConditionTruncated)
		}
		return
	}

	conditions.Set(s.conditions, generation, corev1alpha1.ConditionTruncated, true, corev1alpha1.ReasonStatusLimit,
		conditions.Cut("Left out: "+strings.Join(more, "; "), room/2))
}

// room is reserved for the condition Truncated.
const room = 1 << 10

// parts of a status that determine its size.
type parts struct {
	status     any
	conditions *[]metav1.Condition
	blocking   *[]corev1alpha1.BlockingObject
	controlled *[]corev1alpha1.ControlledObjectReference
	timeline   *[]corev1alpha1.PhaseTimes
	// dependencies are records of a package, with limits of their own.
	dependencies []corev1alpha1.DependencyStatus
	resolved     *corev1alpha1.ResolvedPackage
}

func partsOf(status any) *parts {
	switch s := status.(type) {
	case *corev1alpha1.ObjectSetStatus:
		return &parts{status: s, conditions: &s.Conditions, blocking: &s.Blocking, controlled: &s.ControllerOf, timeline: &s.Timeline}
	case *corev1alpha1.ObjectDeploymentStatus:
		return &parts{status: s, conditions: &s.Conditions, blocking: &s.Blocking, controlled: &s.ControllerOf}
	case *corev1alpha1.PackageStatus:
		return &parts{
			status: s, conditions: &s.Conditions, blocking: &s.Blocking, controlled: new([]corev1alpha1.ControlledObjectReference),
			dependencies: s.Dependencies, resolved: s.Resolved,
		}
	}

	return nil
}

// fits reports whether the status is small enough without the condition Truncated.
func (s *parts) fits() bool {
	all := *s.conditions
	defer func() { *s.conditions = all }()
	*s.conditions = slices.Clone(all)
	conditions.Remove(s.conditions, corev1alpha1.ConditionTruncated)
	text, err := json.Marshal(s.status)
	return err != nil || len(text) <= limits.StatusBytes-room // the client reports the error
}

// shorten truncates messages.
func (s *parts) shorten(most int) string {
	for i := range *s.conditions {
		c := &(*s.conditions)[i]
		c.Message = conditions.Cut(c.Message, most)
	}

	for i := range *s.blocking {
		b := &(*s.blocking)[i]
		b.Message = conditions.Cut(b.Message, most)
	}

	for i := range s.dependencies {
		for j := range s.dependencies[i].Conditions {
			c := &s.dependencies[i].Conditions[j]
			c.Message = conditions.Cut(c.Message, most)
		}
	}

	return fmt.Sprintf("the ends of messages longer than %d bytes", most)
}

// forgetImages comes first: its result stays, so that the next status fits without another cut.
func (s *parts) forgetImages() string {
	for s.resolved != nil && len(s.resolved.Images) > 0 && !s.fits() {
		last := len(s.resolved.Images) - 1
		s.resolved.Images = s.resolved.Images[:last:last]
		s.resolved.OmittedImages++
	}
	return ""
}

func (s *parts) forgetControlled() string {
	all := len(*s.controlled)
	for !s.fits() && len(*s.controlled) > 0 {
		*s.controlled = (*s.controlled)[:len(*s.controlled)/2]
	}
	return counted(all-len(*s.controlled), all, "entries of controllerOf")
}

func (s *parts) forgetMapped() string {
	all, left := 0, 0
	for _, c := range *s.conditions {
		if conditions.Mapped(c.Type) {
			all++
		}
	}

	for i := len(*s.conditions) - 1; i >= 0 && !s.fits(); i-- {
		if typ := (*s.conditions)[i].Type; conditions.Mapped(typ) {
			conditions.Remove(s.conditions, typ)
			left++
		}
	}

	return counted(left, all, "mapped conditions")
}

func (s *parts) forgetBlocking() string {
	all := len(*s.blocking)
	for !s.fits() && len(*s.blocking) > 0 {
		*s.blocking = (*s.blocking)[:len(*s.blocking)-1]
	}
	return counted(all-len(*s.blocking), all, "blocking objects")
}

func counted(left, all int, what string) string {
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d %s", left, all, what)
}
