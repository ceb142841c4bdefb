package registry

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/limits"
)

const (
	pullTimeout     = 5 * time.Minute // of one whole pull
	imageCacheBytes = 1 << 30         // default of the image cache on disk
)

// Options configure a Puller. The zero value pulls public images with the user's Docker config, without a cache.
type Options struct {
	// Folder of the image that is read; "package" by default.
	Folder string
	// PackageBytes is how many bytes the files of a package may have. 0 means limits.PackageBytes.
	PackageBytes int64
	// Keychain is queried for every pull. Nil means the Docker config.
	Keychain authn.Keychain
	// CABundle is a PEM file with further certificate authorities, read for every pull.
	CABundle string
	// Authorities are further ones of single registries, read for every pull.
	Authorities Authorities
	// InsecureRegistries are hosts, with their port, with plain HTTP or unverified certificates, also loopback.
	InsecureRegistries []string
	// Policy says which addresses images are pulled from, beside those of registries that other options name. Link-local and
	// metadata addresses are none in any case.
	Policy outbound.Policy
	// ImagePrefixes change references before they are parsed, RegistryHosts the registry after that.
	ImagePrefixes, RegistryHosts Overrides
	// CacheDir keeps downloads; empty for none.
	CacheDir string
	// CacheBytes bounds CacheDir, least recently used first. 0 means imageCacheBytes.
	CacheBytes int64
	// Proxy is http.ProxyFromEnvironment by default; Proxies of single registries come first.
	Proxy   func(*http.Request) (*url.URL, error)
	Proxies Proxies
	// Once is set if the caller does not retry, as a command.
	Once      bool
	UserAgent string
	// Timeouts default to those of package limits.
	Timeouts Timeouts
	// OnCacheError is called when CacheDir cannot be written or evicted.
	OnCacheError func(error)
}

// Timeouts bound the waits of one pull.
type Timeouts struct {
	// Connect covers TCP and, separately, the TLS handshake.
	Connect time.Duration
	// Header is the time to the first byte of a response.
	Header time.Duration
	// Stall is the time in which a body has to grow by limits.StallBytes.
	Stall time.Duration
	Pull  time.Duration
}

func (o *Options) setDefaults() {
	o.Folder = cmp.Or(o.Folder, "package")
	o.CacheBytes = cmp.Or(o.CacheBytes, imageCacheBytes)
	o.UserAgent = cmp.Or(o.UserAgent, "lockstep")
	o.Timeouts.Connect = cmp.Or(o.Timeouts.Connect, limits.ConnectTimeout)
	o.Timeouts.Header = cmp.Or(o.Timeouts.Header, limits.ResponseHeaderTimeout)
	o.Timeouts.Stall = cmp.Or(o.Timeouts.Stall, limits.StallTimeout)
	o.Timeouts.Pull = cmp.Or(o.Timeouts.Pull, pullTimeout)
	if o.Keychain == nil {
		o.Keychain = authn.DefaultKeychain
	}
	if o.Proxy == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	if o.OnCacheError == nil {
		o.OnCacheError = func(error) {}
	}
}

func (o *Options) insecureHosts() (map[string]bool, error) {
	hosts := map[string]bool{}
	for _, host := range o.InsecureRegistries {
		reg, err := name.NewRegistry(host)
		if err != nil || host == "" {
			return nil, fmt.Errorf("insecure registry %q: want a host, with its port where it has one, such as localhost:5000", host)
		}
		if o.Authorities.Has(reg.RegistryStr()) {
			return nil, fmt.Errorf("--registry-ca %s: the registry is named by --insecure-registry, too; remove one of them", settingKey(reg.RegistryStr()))
		}
		hosts[reg.RegistryStr()] = true
	}
	return hosts, nil
}
