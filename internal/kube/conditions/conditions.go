package conditions

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Set upserts a condition that is True or False and reports whether that changed
// anything.
func Set(conds *[]metav1.Condition, generation int64, typ string, status bool, reason, message string) bool {
	value := metav1.ConditionFalse
	if status {
		value = metav1.ConditionTrue
	}
	return upsert(conds, generation, metav1.Condition{Type: typ, Status: value, Reason: reason, Message: message})
}

// SetUnknown upserts a condition that is Unknown and reports whether that changed
// anything.
func SetUnknown(conds *[]metav1.Condition, generation int64, typ, reason, message string) bool {
	return upsert(conds, generation, metav1.Condition{Type: typ, Status: metav1.ConditionUnknown, Reason: reason, Message: message})
}

// Copy upserts a condition of another object, under the generation of the object that receives it.
// It reports whether that changed anything.
func Copy(conds *[]metav1.Condition, generation int64, source metav1.Condition) bool {
	return upsert(conds, generation, source)
}

func upsert(conds *[]metav1.Condition, generation int64, c metav1.Condition) bool {
	c.ObservedGeneration, c.Message, c.Reason = generation, Message(c.Message), Reason(c.Reason)
	c.LastTransitionTime = metav1.Time{Time: time.Now().Truncate(time.Second)} // the precision of the API
	return meta.SetStatusCondition(conds, c)
}

// Remove removes a condition and reports whether that changed anything. Most callers find
// none, for which meta.RemoveStatusCondition copies all others.
func Remove(conds *[]metav1.Condition, typ string) bool {
	return meta.FindStatusCondition(*conds, typ) != nil && meta.RemoveStatusCondition(conds, typ)
}

// IsTrueFor reports whether a condition is True and describes that generation.
func IsTrueFor(conds []metav1.Condition, typ string, generation int64) bool {
	c := meta.FindStatusCondition(conds, typ)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}

// Mapped reports whether a condition type was mapped from a managed object. Only those contain a
// slash.
func Mapped(typ string) bool { return strings.Contains(typ, "/") }

// SameStatuses reports whether the same conditions are there with the same statuses.
func SameStatuses(a, b []metav1.Condition) bool {
	statuses := func(all []metav1.Condition) map[string]metav1.ConditionStatus {
		m := make(map[string]metav1.ConditionStatus, len(all))
		for _, c := range all {
			m[c.Type] = c.Status
		}
		return m
	}
	return maps.Equal(statuses(a), statuses(b))
}

// Value returns a condition as the value of a metric: 1 for True, 0 for False, and 2 for Unknown or
// none.
func Value(conds []metav1.Condition, typ string) float64 {
	c := meta.FindStatusCondition(conds, typ)
	switch {
	case c == nil || c.Status == metav1.ConditionUnknown:
		return 2
	case c.Status == metav1.ConditionTrue:
		return 1
	}
	return 0
}

// State is the input of Kstatus about an object.
type State struct {
	// Ready: the object is in the state that its spec demands.
	Ready bool
	// Stalled: the engine cannot get there without help. It wins over Ready.
	Stalled bool
	// Reason and Message explain the state. A stalled or progressing object repeats them in the
	// abnormal condition.
	Reason, Message string
}

// Kstatus sets Ready, Reconciling and Stalled, and reports whether a condition changed. Reconciling
// and Stalled exist only while they are True. An object that is neither ready nor stalled is
// reconciling.
func Kstatus(conds *[]metav1.Condition, generation int64, s State) bool {
	ready := s.Ready && !s.Stalled
	changed := Set(conds, generation, corev1alpha1.ConditionReady, ready, s.Reason, s.Message)
	changed = abnormal(conds, generation, corev1alpha1.ConditionReconciling, !s.Ready && !s.Stalled, s) || changed
	return abnormal(conds, generation, corev1alpha1.ConditionStalled, s.Stalled, s) || changed
}

// abnormal sets a condition that is there only while it is True.
func abnormal(conds *[]metav1.Condition, generation int64, typ string, holds bool, s State) bool {
	if !holds {
		return Remove(conds, typ)
	}
	return Set(conds, generation, typ, true, s.Reason, s.Message)
}

// Limits of metav1.Condition. Conditions of other kinds can exceed them, and the API server rejects
// a whole status for one invalid condition.
const (
	maxReason = 1024
	maxType   = 316
)

var (
	noReason      = regexp.MustCompile(`[^A-Za-z0-9_,:]`)
	qualifiedType = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
)

// Reason makes text a valid reason of a condition: invalid characters become _, and an
// empty text Unknown.
func Reason(text string) string {
	if text == "" {
		return "Unknown" // the schema requires a reason
	}
	text = noReason.ReplaceAllString(text[:min(len(text), 4*maxReason)], "_")
	if first := text[0]; first < 'A' || first > 'Z' && first < 'a' || first > 'z' {
		text = "Reason_" + strings.TrimLeft(text, "_,:")
	}
	return strings.TrimRight(text[:min(len(text), maxReason)], ",:")
}

// Foreign makes a condition of another kind valid for a status of the API group. Its type has to be
// valid already, see ValidType.
func Foreign(typ, status, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: typ, Status: metav1.ConditionUnknown, Reason: Reason(reason), Message: message}
	switch {
	case strings.EqualFold(status, string(metav1.ConditionTrue)):
		c.Status = metav1.ConditionTrue
	case strings.EqualFold(status, string(metav1.ConditionFalse)):
		c.Status = metav1.ConditionFalse
	case !strings.EqualFold(status, string(metav1.ConditionUnknown)):
		c.Message = strings.TrimSpace(fmt.Sprintf("The object has the status %.64q, which is neither True nor False. %s", status, message))
	}

	c.Message = Message(c.Message)
	return c
}

// ValidType reports whether typ is a valid type of a condition.
func ValidType(typ string) bool { return len(typ) <= maxType && qualifiedType.MatchString(typ) }
