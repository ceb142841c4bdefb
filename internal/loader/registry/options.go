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
	pullTimeout     = 5 * time.Minute // for one whole pull
	imageCacheBytes = 1 << 30         // of the image cache on disk, which evicts the least recently used blobs first
)

// Options configure a Puller. The zero value pulls public images with the user's Docker config,
// without a cache.
type Options struct {
	// Folder is the folder of the image that is read; "package" by default.
	Folder string
	// PackageBytes limits the files of a package. 0 means limits.PackageBytes.
	PackageBytes int64
	// Keychain is queried for every pull. Nil means the Docker config.
	Keychain authn.Keychain
	// CABundle is a PEM file with additional certificate authorities, which is read for every pull.
	CABundle string
	// Authorities are additional certificate authorities of single registries, read for every pull.
	Authorities Authorities
	// InsecureRegistries are hosts, with their port, that use plain HTTP or unverified
	// certificates. They can be at loopback addresses.
	InsecureRegistries []string
	// Policy decides which addresses images are pulled from, in addition to the registries that
	// other options name. Link-local and metadata addresses are always refused.
	Policy outbound.Policy
	// ImagePrefixes change references before they are parsed, RegistryHosts the registry after
	// that.
	ImagePrefixes, RegistryHosts Overrides
	// CacheDir keeps downloads, up to imageCacheBytes; empty disables the cache.
	CacheDir string
	// Proxy is http.ProxyFromEnvironment by default. Proxies of single registries take precedence.
	Proxy     func(*http.Request) (*url.URL, error)
	Proxies   Proxies
	UserAgent string
	// Timeouts default to the ones in package limits.
	Timeouts Timeouts
	// OnCacheError is called if writing to or evicting from CacheDir fails.
	OnCacheError func(error)
}

// Timeouts bound the waits of one pull.
type Timeouts struct {
	// Connect covers TCP and, separately, the TLS handshake.
	Connect time.Duration
	// Header is the time to the first byte of a response.
	Header time.Duration
	// Stall is the maximum time for a body to grow by limits.StallBytes.
	Stall time.Duration
	Pull  time.Duration
}

// setDefaults fills in all options that are not set.
func (o *Options) setDefaults() {
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

// insecureHosts returns the insecure registries in canonical form. A registry cannot be insecure
// and have certificate authorities, because the one would make the other pointless.
func (o *Options) insecureHosts() (map[string]bool, error) {
	hosts := map[string]bool{}
	for _, host := range o.InsecureRegistries {
		reg, err := name.NewRegistry(host)
		if err != nil || host == "" {
			return nil, fmt.Errorf("insecure registry %q: want a host, with its port if it has one, such as localhost:5000", host)
		}
		if o.Authorities.Has(reg.RegistryStr()) {
			return nil, fmt.Errorf("--registry-ca %s: the registry is named by --insecure-registry, too; remove one of them", settingKey(reg.RegistryStr()))
		}
		hosts[reg.RegistryStr()] = true
	}
	return hosts, nil
}
