package violation

import (
	"fmt"
	"strings"

	"lockstep.run/lockstep/internal/objects/spelling"
)

// Suggest returns `Did you mean "x"?` with the nearest known name, or fallback.
func Suggest(written string, known []string, fallback string) string {
	if name, ok := spelling.Nearest(written, known); ok {
		return fmt.Sprintf("Did you mean %q?", name)
	}
	return fallback
}

// Listed joins up to 20 names.
func Listed(names []string) string {
	const most = 20
	if n := len(names); n > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}
