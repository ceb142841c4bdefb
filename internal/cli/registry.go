package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/version"
)

type registryFlags struct {
	insecure []string
	all      bool
	caFile   string
}

func (r *registryFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&r.insecure, "insecure-registry", nil, "`HOST[:PORT]` that may be reached by plain HTTP or with a certificate that does not verify; repeatable")
	cmd.Flags().BoolVar(&r.all, "insecure", false, "all registries may be reached so; better name them by --insecure-registry")
	cmd.Flags().StringVar(&r.caFile, "registry-ca-file", "", "PEM `file` with certificate authorities of registries to trust beside the system's")
}

// puller reads a folder of images; the default is that of packages.
func (r *registryFlags) puller(folder string, refs ...string) (*registry.Puller, error) {
	insecure := slices.Clone(r.insecure)
	for _, text := range refs {
		if ref, err := name.ParseReference(text); err == nil && r.trusts(ref.Context().RegistryStr()) {
			insecure = append(insecure, ref.Context().RegistryStr())
		}
	}
	return registry.NewPuller(registry.Options{
		Folder: folder, InsecureRegistries: insecure, CABundle: r.caFile, Once: true, UserAgent: "kubectl-package/" + version.Get(),
	})
}

// trusts reports whether a registry may be reached by plain HTTP without being named.
func (r *registryFlags) trusts(registry string) bool {
	host := (&url.URL{Host: registry}).Hostname()
	return r.all || r.caFile == "" && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

func (r *registryFlags) pull(ctx context.Context, ref string) (loader.Files, error) {
	image, err := r.pullFrom(ctx, "", ref, nil)
	if err != nil {
		return nil, err
	}
	return image.Files, nil
}

// pullFrom reads a folder of an image. keys, if any, precede the Docker credentials.
func (r *registryFlags) pullFrom(ctx context.Context, folder, ref string, keys authn.Keychain) (*registry.Image, error) {
	puller, err := r.puller(folder, ref)
	if err != nil {
		return nil, err
	}
	image, err := puller.With(registry.Access{Keychain: keys}).Pull(ctx, ref)
	return image, advise(err)
}

func (r *registryFlags) resolve(ctx context.Context, ref string) (string, error) {
	puller, err := r.puller("", ref)
	if err != nil {
		return "", err
	}
	digest, err := puller.Resolve(ctx, ref)
	return digest, advise(err)
}

// advise adds the flag that helps.
func advise(err error) error {
	var failure *registry.PullError
	if errors.As(err, &failure) && failure.Reason == registry.ReasonInsecure {
		return fmt.Errorf("%w (here by --insecure-registry)", err)
	}
	return err
}
