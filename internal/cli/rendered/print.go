package rendered

import (
	"fmt"
	"io"

	"lockstep.run/lockstep/internal/cli/terminal"
)

// Print writes objects as YAML documents, each phase with its name above it.
func Print(w io.Writer, objects []Object) error {
	for i, o := range objects {
		if i > 0 {
			if _, err := io.WriteString(w, "---\n"); err != nil {
				return err
			}
		}
		if i == 0 || objects[i-1].Number != o.Number {
			if _, err := fmt.Fprintf(w, "# Phase %s\n", terminal.Line(o.Phase)); err != nil {
				return err
			}
		}
		if err := terminal.WriteYAML(w, o); err != nil {
			return err
		}
	}
	return nil
}
