package conditions

import (
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API server's rules for a condition on our statuses, which those of other kinds
// need not follow. One condition that breaks them has the whole status refused.
const (
	maxReason = 1024
	maxType   = 316
)

var (
	noReason      = regexp.MustCompile(`[^A-Za-z0-9_,:]`)
	qualifiedType = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
)

// Reason returns text as a condition may have it for a reason: letters, digits and _
// begin with a letter. Anything else becomes _; an empty one is Unknown.
func Reason(text string) string {
	if text == "" {
		return "Unknown" // the schema asks for one
	}
	text = noReason.ReplaceAllString(text[:min(len(text), 4*maxReason)], "_")
	if first := text[0]; first < 'A' || first > 'Z' && first < 'a' || first > 'z' {
		text = "Reason_" + strings.TrimLeft(text, "_,:")
	}
	return strings.TrimRight(text[:min(len(text), maxReason)], ",:")
}

// Foreign returns a condition that another kind reports as our statuses may carry it.
// Its type has to be one that FitsType.
func Foreign(typ, status, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: typ, Status: metav1.ConditionUnknown, Reason: Reason(reason), Message: message}
	switch {
	case strings.EqualFold(status, string(metav1.ConditionTrue)):
		c.Status = metav1.ConditionTrue
	case strings.EqualFold(status, string(metav1.ConditionFalse)):
		c.Status = metav1.ConditionFalse
	case !strings.EqualFold(status, string(metav1.ConditionUnknown)):
		c.Message = strings.TrimSpace(fmt.Sprintf("The object says %.64q, which is neither True nor False. %s", status, message))
	}
	c.Message = Message(c.Message)
	return c
}

// FitsType reports whether a condition may have that type.
func FitsType(typ string) bool { return len(typ) <= maxType && qualifiedType.MatchString(typ) }
