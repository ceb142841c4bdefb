package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/loader"
)

type sourceFlags struct {
	registry registryFlags
	pull     bool
}

func (s *sourceFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.pull, "pull", false, "the argument is an image, even if there is a folder of that name")
	s.registry.add(cmd)
}

func (s *sourceFlags) read(ctx context.Context, source string) (loader.Files, error) {
	if s.folder(source) != "" {
		return readSource(source)
	}
	files, err := s.registry.pull(ctx, source)
	if err != nil && bareName(source) && !s.pull {
		return nil, fmt.Errorf("there is no folder %s, and as an image: %w", source, err)
	}
	return files, err
}

// folder is the source where that is a folder, else "".
func (s *sourceFlags) folder(source string) string {
	if !s.pull && isPath(source) {
		return source
	}
	return ""
}

func readSource(path string) (loader.Files, error) {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return nil, fmt.Errorf("there is no folder %s", path)
	case err != nil:
		return nil, fmt.Errorf("read the package: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("%s is no folder: name the folder with the manifest.yaml", path)
	}
	files, err := loader.ReadFolder(path)
	if err == nil && len(files) == 0 {
		return nil, fmt.Errorf("there are no files in %s: name the folder with the manifest.yaml", path)
	}
	return files, err
}

// isPath reports whether an argument is a folder: it exists, or is written as only paths are.
func isPath(arg string) bool {
	if strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, "~") || strings.HasSuffix(arg, "/") {
		return true
	}
	_, err := os.Stat(arg)
	return err == nil
}
