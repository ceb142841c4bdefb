package command

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/sandbox/internal/program"
)

func newLink() *cobra.Command {
	return &cobra.Command{
		Use:    "link",
		Short:  "Make symlinks next to this binary, one for each component that it can be",
		Args:   cobra.NoArgs,
		Hidden: true, // a step of the build
		RunE: func(*cobra.Command, []string) error {
			binary, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program's file: %w", err)
			}
			for _, name := range program.Names() {
				link := filepath.Join(filepath.Dir(binary), name)
				if err := os.Symlink(filepath.Base(binary), link); err != nil && !os.IsExist(err) {
					return fmt.Errorf("making a symlink: %w", err)
				}
			}
			return nil
		},
	}
}
