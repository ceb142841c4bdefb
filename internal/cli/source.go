package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/version"
)

// registryFlags say how registries are reached.
type registryFlags struct {
	insecure []string
	caFile   string
}

func (r *registryFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&r.insecure, "insecure-registry", nil, "`HOST[:PORT]` that may be reached by plain HTTP or with a certificate that does not verify; repeatable")
	cmd.Flags().StringVar(&r.caFile, "registry-ca-file", "", "PEM `file` with certificate authorities of registries to trust beside the system's")
}

// pull reads a package out of an image.
func (r *registryFlags) pull(ctx context.Context, ref string) (loader.Files, error) {
	puller, err := registry.NewPuller(registry.Options{
		InsecureRegistries: r.insecure, CABundle: r.caFile, UserAgent: "kubectl-package/" + version.Get(),
	})
	if err != nil {
		return nil, err
	}
	image, err := puller.Pull(ctx, ref)
	var failure *registry.PullError
	if errors.As(err, &failure) && failure.Reason == registry.ReasonInsecure {
		return nil, fmt.Errorf("%w (here by --insecure-registry)", err)
	}
	if err != nil {
		return nil, err
	}
	return image.Files, nil
}

// sourceFlags say where a package is read from: a folder or an image.
type sourceFlags struct {
	registry registryFlags
	pull     bool
}

func (s *sourceFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.pull, "pull", false, "the argument is an image, even if there is a folder of that name")
	s.registry.add(cmd)
}

func (s *sourceFlags) read(ctx context.Context, source string) (loader.Files, error) {
	if !s.pull && isPath(source) {
		return readSource(source)
	}
	return s.registry.pull(ctx, source)
}

// readSource reads a package out of a folder.
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
	return loader.ReadFolder(path)
}

// isPath tells whether an argument means a folder and not an image: it exists,
// or is written as only paths are.
func isPath(arg string) bool {
	if strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, "~") {
		return true
	}
	_, err := os.Stat(arg)
	return err == nil
}
