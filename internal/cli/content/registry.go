package content

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/kube/version"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/registry"
)

// RegistryFlags set the connections to registries.
type RegistryFlags struct {
	insecure []string
	all      bool
	caFile   string
	cas      []string
	proxies  []string
}

// Add adds the flags to a command.
func (r *RegistryFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&r.insecure, "insecure-registry", nil, "allow plain HTTP, and a certificate that does not verify, for the registry `HOST[:PORT]`; repeatable")
	cmd.Flags().BoolVar(&r.all, "insecure", false, "allow this for all registries; it is safer to name them with --insecure-registry")
	cmd.Flags().StringVar(&r.caFile, "registry-ca-file", "", "trust the certificate authorities of registries in this PEM `file`, in addition to the system's")
	cmd.Flags().StringArrayVar(&r.cas, "registry-ca", nil, "trust the certificate authorities in a PEM file for one registry, `HOST[:PORT]=FILE`, in addition to the ones for all; repeatable")
	cmd.Flags().StringArrayVar(&r.proxies, "registry-proxy", nil, "use a proxy for one registry, `HOST[:PORT]=URL`, or direct for none, instead of the environment's; repeatable")
}

// options returns the options for all registries.
func (r *RegistryFlags) options() (o registry.Options, err error) {
	o.CABundle = r.caFile
	if o.Authorities, err = registry.ParseAuthorities(r.cas); err != nil {
		return o, fmt.Errorf("invalid --registry-ca: %w", err)
	}
	if o.Proxies, err = registry.ParseProxies(r.proxies); err != nil {
		return o, fmt.Errorf("invalid --registry-proxy: %w", err)
	}
	return o, nil
}

// Puller reads a folder of images. The default is the folder of packages.
func (r *RegistryFlags) Puller(folder string, refs ...string) (*registry.Puller, error) {
	opts, err := r.options()
	if err != nil {
		return nil, err
	}
	opts.Policy.Local = true // of the user's own machine
	opts.Folder, opts.UserAgent = folder, "kubectl-package/"+version.Get()
	opts.InsecureRegistries = slices.Clone(r.insecure)

	for _, text := range refs {
		if ref, err := name.ParseReference(text); err == nil && r.trusts(ref.Context().RegistryStr()) {
			opts.InsecureRegistries = append(opts.InsecureRegistries, ref.Context().RegistryStr())
		}
	}
	return registry.NewPuller(opts)
}

// trusts reports whether a registry can be reached by plain HTTP without a flag.
func (r *RegistryFlags) trusts(reg string) bool {
	// A registry with its own authority is meant to be verified.
	if own, err := registry.ParseAuthorities(r.cas); err != nil || own.Has(reg) {
		return false
	}
	host := (&url.URL{Host: reg}).Hostname()
	return r.all || r.caFile == "" && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// Pull reads the files of a package. It returns none if the image is not a package.
func (r *RegistryFlags) Pull(ctx context.Context, ref string) (loader.Files, error) {
	image, err := r.PullFrom(ctx, "", ref, nil)
	if err != nil {
		return nil, err
	}
	return image.Files, nil
}

// PullFrom reads a folder of an image. keys, if any, precede the Docker credentials.
func (r *RegistryFlags) PullFrom(ctx context.Context, folder, ref string, keys authn.Keychain) (*registry.Image, error) {
	puller, err := r.Puller(folder, ref)
	if err != nil {
		return nil, err
	}
	image, err := puller.With(registry.Access{Keychain: keys}).Pull(ctx, ref)
	return image, Advise(err)
}

// PullManifests reads plain manifests of an image by digest, along with the images in the lock of a
// bundle, which are in the repository of the reference as it is written.
func (r *RegistryFlags) PullManifests(ctx context.Context, ref, written string, keys authn.Keychain) (*registry.Image, error) {
	puller, err := r.Puller("", ref)
	if err != nil {
		return nil, err
	}
	puller = puller.With(registry.Access{Keychain: keys, Selection: loader.PlainManifests})
	image, err := puller.Pull(ctx, ref)
	if err != nil {
		return nil, Advise(err)
	}
	image.Files, err = fetch.Relocate(ctx, puller, loader.RepositoryOf(ref), loader.RepositoryOf(written), image.Digest, image.Files)

	return image, err
}

// Resolve returns the digest of an image.
func (r *RegistryFlags) Resolve(ctx context.Context, ref string) (string, error) {
	puller, err := r.Puller("", ref)
	if err != nil {
		return "", err
	}
	digest, err := puller.Resolve(ctx, ref)
	return digest, Advise(err)
}

// Advise adds the flag that helps to an error.
func Advise(err error) error {
	var failure *registry.PullError
	if errors.As(err, &failure) && failure.Reason == registry.ReasonInsecure {
		return fmt.Errorf("%w (here with --insecure-registry)", err)
	}
	return err
}

// hosts are the registries that can be insecure, as references name them.
func (r *RegistryFlags) hosts() (map[string]bool, error) {
	hosts := map[string]bool{}
	for _, host := range r.insecure {
		reg, err := name.NewRegistry(host)
		if err != nil || host == "" {
			return nil, fmt.Errorf("invalid --insecure-registry %q: write a host, with its port if it has one, such as localhost:5000", host)
		}
		hosts[reg.RegistryStr()] = true
	}
	return hosts, nil
}

// Tags parses the tags that an image is pushed to.
func (r *RegistryFlags) Tags(refs []string) ([]name.Tag, error) {
	insecure, err := r.hosts()
	if err == nil {
		_, err = r.options()
	}
	if err != nil {
		return nil, err
	}

	var tags []name.Tag
	for _, text := range refs {
		tag, err := name.NewTag(text)
		if err != nil {
			return nil, fmt.Errorf("invalid tag specified as parameter %q: write it as host/path:tag", text)
		}
		if r.trusts(tag.RegistryStr()) || insecure[tag.RegistryStr()] {
			tag, _ = name.NewTag(text, name.Insecure)
		}
		tags = append(tags, tag)
	}

	return tags, nil
}

// Push writes an image to each of its tags.
func (r *RegistryFlags) Push(ctx context.Context, image v1.Image, tags []name.Tag) error {
	for _, tag := range tags {
		options, err := r.remote(ctx, tag.Registry)
		if err != nil {
			return err
		}
		if err := remote.Write(tag, image, options...); err != nil {
			return requestError("push", tag, err)
		}
	}
	return nil
}

// Remote parses a reference, and returns the options to reach its registry with the user's
// credentials.
func (r *RegistryFlags) Remote(ctx context.Context, ref string) (name.Reference, []remote.Option, error) {
	parsed, err := r.reference(ref)
	if err != nil {
		return nil, nil, err
	}
	options, err := r.remote(ctx, parsed.Context().Registry)
	return parsed, options, err
}

// remote returns the options for requests to a registry.
func (r *RegistryFlags) remote(ctx context.Context, reg name.Registry) ([]remote.Option, error) {
	carrier, err := r.transport(reg)
	if err != nil {
		return nil, err
	}
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(carrier), remote.WithUserAgent("kubectl-package/" + version.Get()),
	}, nil
}

// RepositoryFiles reads the files of a repository of packages. It returns none if the image is not
// a repository.
func (r *RegistryFlags) RepositoryFiles(ctx context.Context, ref string) (loader.Files, error) {
	image, err := r.PullFrom(ctx, repository.Folder, ref, nil)
	if err != nil {
		return nil, err
	}
	return image.Files, nil
}

// requestError is the error of a request about an image.
func requestError(doing string, ref name.Reference, err error) error {
	var (
		answer  *transport.Error
		badCert *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s %s: interrupted", doing, ref)
	case errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		return fmt.Errorf("%s %s: the registry refuses these credentials: %w. Log in with docker login or a similar tool", doing, ref, err)
	case errors.As(err, &badCert):
		return fmt.Errorf("%s %s: %w. Give its certificate authority: --registry-ca %s=FILE", doing, ref, badCert, ref.Context().RegistryStr())
	case errors.Is(err, errPlainHTTP):
		return fmt.Errorf("%s %s: the registry does not speak TLS. If it is yours to trust, add --insecure-registry %s", doing, ref, ref.Context().RegistryStr())
	}

	return fmt.Errorf("%s %s: %w", doing, ref, err)
}

// transport is verified TLS, except for insecure registries.
func (r *RegistryFlags) transport(reg name.Registry) (http.RoundTripper, error) {
	hosts, err := r.hosts()
	if err != nil {
		return nil, err
	}
	opts, err := r.options()
	if err != nil {
		return nil, err
	}

	// The clone keeps the proxy and timeouts of the default transport.
	carrier := http.DefaultTransport.(*http.Transport).Clone()
	carrier.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	insecure := r.trusts(reg.RegistryStr()) || hosts[reg.RegistryStr()]
	carrier.TLSClientConfig.InsecureSkipVerify = insecure // requested by --insecure-registry
	own, err := opts.Transport(reg.RegistryStr(), carrier)
	if err != nil || insecure {
		return own, err
	}

	return tlsOnly{own}, nil
}

// errPlainHTTP means that a registry was reached without TLS.
var errPlainHTTP = errors.New("plain HTTP")

// tlsOnly rejects plain HTTP, because the library falls back to it on private addresses.
type tlsOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t tlsOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, errPlainHTTP
	}
	return t.next.RoundTrip(request)
}

// Signatures returns the digests of the bundles that verify an image, and a lower bound for the
// number of further ones.
func (r *RegistryFlags) Signatures(ctx context.Context, ref, digest string) (bundles []v1.Hash, unread int, err error) {
	puller, err := r.Puller("", ref)
	if err != nil {
		return nil, 0, err
	}
	bundles, unread, err = puller.Signatures(ctx, ref, digest)
	return bundles, unread, Advise(err)
}

// reference parses the reference of an image, by tag or by digest.
func (r *RegistryFlags) reference(text string) (name.Reference, error) {
	insecure, err := r.hosts()
	if err != nil {
		return nil, err
	}
	ref, err := name.ParseReference(text)
	if err != nil {
		return nil, fmt.Errorf("invalid image %q: write it as host/path:tag or host/path@sha256:…", text)
	}
	if reg := ref.Context().RegistryStr(); r.trusts(reg) || insecure[reg] {
		ref, err = name.ParseReference(text, name.Insecure)
	}

	return ref, err
}
