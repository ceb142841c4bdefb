package conditions

import (
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
