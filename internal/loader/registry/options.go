package registry

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"lockstep.run/lockstep/internal/limits"
)

// Options say how images are pulled. The zero value asks for public images
// with the credentials of the user's Docker config and keeps nothing on disk.
type Options struct {
	// Folder of the image that is read. Empty means that of a package.
	Folder string
	// Keychain has the credentials. Nil means those of the Docker config. It is
	// asked anew for every pull.
	Keychain authn.Keychain
	// CABundle is a PEM file with certificate authorities to trust beside those
	// of the system. It is read anew for every pull.
	CABundle string
	// InsecureRegistries are hosts, with the port where it is part of the image
	// reference, that may be reached by plain HTTP or with a certificate that
	// does not verify. Loopback addresses are no exception.
	InsecureRegistries []string
	// ImagePrefixes change references before they are parsed, RegistryHosts the
	// registry after that.
	ImagePrefixes, RegistryHosts Overrides
	// CacheDir keeps what was downloaded. Empty means nothing is kept.
	CacheDir string
	// CacheBytes bounds CacheDir; what was used least recently goes first. 0
	// means limits.ImageCacheBytes.
	CacheBytes int64
	// Proxy returns the proxy of a request. Nil means the environment's.
	Proxy func(*http.Request) (*url.URL, error)
	// Once is set if pulls are not retried, as those of a command.
	Once bool
	// UserAgent of the requests.
	UserAgent string
	// Timeouts; each that is 0 has its value from package limits.
	Timeouts Timeouts
	// OnCacheError is called when CacheDir cannot be written or evicted. Pulls go
	// on without it. Nil ignores it.
	OnCacheError func(error)
}

// Timeouts bound the waits of one pull.
type Timeouts struct {
	// Connect covers TCP and, apart from it, the TLS handshake.
	Connect time.Duration
	// Header is how long a response may take to begin.
	Header time.Duration
	// Stall is the time in which a body has to make progress by
	// limits.StallBytes.
	Stall time.Duration
	// Pull covers everything.
	Pull time.Duration
}

func (o *Options) setDefaults() {
	o.Folder = cmp.Or(o.Folder, "package")
	if o.Keychain == nil {
		o.Keychain = authn.DefaultKeychain
	}
	if o.Proxy == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	o.CacheBytes = cmp.Or(o.CacheBytes, limits.ImageCacheBytes)
	o.UserAgent = cmp.Or(o.UserAgent, "lockstep")
	o.Timeouts.Connect = cmp.Or(o.Timeouts.Connect, limits.ConnectTimeout)
	o.Timeouts.Header = cmp.Or(o.Timeouts.Header, limits.ResponseHeaderTimeout)
	o.Timeouts.Stall = cmp.Or(o.Timeouts.Stall, limits.StallTimeout)
	o.Timeouts.Pull = cmp.Or(o.Timeouts.Pull, limits.PullTimeout)
	if o.OnCacheError == nil {
		o.OnCacheError = func(error) {}
	}
}

// insecureHosts checks and normalises InsecureRegistries.
func (o *Options) insecureHosts() (map[string]bool, error) {
	hosts := map[string]bool{}
	for _, host := range o.InsecureRegistries {
		reg, err := name.NewRegistry(host)
		if err != nil || host == "" {
			return nil, fmt.Errorf("insecure registry %q: want a host, with its port where it has one, such as localhost:5000", host)
		}
		hosts[reg.RegistryStr()] = true
	}
	return hosts, nil
}

// bundle returns what CABundle holds.
func (o *Options) bundle() ([]byte, error) {
	if o.CABundle == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(o.CABundle)
	if err != nil {
		return nil, fmt.Errorf("read the CA bundle: %w", err)
	}
	return pem, nil
}

// roots returns the system's certificate authorities and those of the bundle.
func (o *Options) roots(pem []byte) (*x509.CertPool, error) {
	if o.CABundle == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("the CA bundle %s has no certificate in PEM form", o.CABundle)
	}
	return pool, nil
}
