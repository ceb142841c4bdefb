package conditions

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Set upserts a condition that is True or False and reports whether that changed
// anything.
func Set(conds *[]metav1.Condition, generation int64, typ string, status bool, reason, message string) bool {
	value := metav1.ConditionFalse
	if status {
		value = metav1.ConditionTrue
	}
	return upsert(conds, metav1.Condition{
		Type: typ, Status: value, ObservedGeneration: generation, Reason: reason, Message: message,
	})
}

// SetUnknown upserts a condition that is Unknown and reports whether that changed
// anything.
func SetUnknown(conds *[]metav1.Condition, generation int64, typ, reason, message string) bool {
	return upsert(conds, metav1.Condition{
		Type: typ, Status: metav1.ConditionUnknown, ObservedGeneration: generation, Reason: reason, Message: message,
	})
}

// Copy upserts a condition as another object reports it, under the generation of
// the object that it goes to. It reports whether that changed anything.
func Copy(conds *[]metav1.Condition, generation int64, source metav1.Condition) bool {
	source.ObservedGeneration = generation
	return upsert(conds, source)
}

func upsert(conds *[]metav1.Condition, c metav1.Condition) bool {
	c.Message = Message(c.Message)
	c.Reason = Reason(c.Reason)
	old := Get(*conds, c.Type)
	switch {
	case old == nil:
		c.LastTransitionTime = now()
		*conds = append(*conds, c)
		return true
	case old.Status == c.Status:
		c.LastTransitionTime = old.LastTransitionTime
	default:
		c.LastTransitionTime = now()
	}
	changed := *old != c
	*old = c
	return changed
}

// now is the time in the precision that the API keeps.
func now() metav1.Time { return metav1.Time{Time: time.Now().Truncate(time.Second)} }

// Remove takes a condition away and reports whether it was there.
func Remove(conds *[]metav1.Condition, typ string) bool {
	for i := range *conds {
		if (*conds)[i].Type == typ {
			*conds = append((*conds)[:i:i], (*conds)[i+1:]...)
			return true
		}
	}
	return false
}

// Get returns the condition of a type, for reading and writing, or nil.
func Get(conds []metav1.Condition, typ string) *metav1.Condition {
	for i := range conds {
		if conds[i].Type == typ {
			return &conds[i]
		}
	}
	return nil
}

// IsTrue reports whether a condition is True, for whatever generation.
func IsTrue(conds []metav1.Condition, typ string) bool {
	c := Get(conds, typ)
	return c != nil && c.Status == metav1.ConditionTrue
}

// IsTrueFor reports whether a condition is True and describes that generation.
func IsTrueFor(conds []metav1.Condition, typ string, generation int64) bool {
	c := Get(conds, typ)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}

// Mapped reports whether a condition type was mapped from a managed object: those
// are the ones with a slash.
func Mapped(typ string) bool { return strings.Contains(typ, "/") }
