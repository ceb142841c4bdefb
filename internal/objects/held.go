package objects

import (
	"strings"

	"lockstep.run/lockstep/internal/limits"
)

// HeldBy says what holds an object that is being deleted: its finalizers, and what its
// conditions say of it. Of those, a Namespace has several, such as which resources
// remain in it and for which API discovery fails, and a CustomResourceDefinition has
// one.
func HeldBy(finalizers []string, conditions []any) string {
	var parts []string
	if len(finalizers) > 0 {
		parts = append(parts, "held by finalizer "+strings.Join(finalizers, ", "))
	}
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		typ, _ := c["type"].(string)
		message, _ := c["message"].(string)
		if c["status"] == "True" && message != "" && (strings.HasPrefix(typ, "Namespace") || typ == "Terminating") {
			parts = append(parts, typ+": "+short(message, limits.HeldMessageBytes))
		}
	}
	return short(strings.Join(parts, "; "), limits.HeldBytes)
}

// short cuts a text.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
