package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"

	"lockstep.run/lockstep/internal/limits"
)

// bundles are the certificate authorities on disk: for all registries at "", and additional ones by
// host.
type bundles struct {
	pem map[string][]byte
	// failed are unreadable files.
	failed map[string]error
	digest [sha256.Size]byte
}

// bundles reads all files.
func (o *Options) bundles() *bundles {
	b := &bundles{pem: map[string][]byte{}, failed: map[string]error{}}
	files := map[string]string{}
	maps.Copy(files, o.Authorities)
	if o.CABundle != "" {
		files[""] = o.CABundle
	}

	hash := sha256.New()
	for _, host := range slices.Sorted(maps.Keys(files)) {
		pem, err := readBundle(files[host])
		if err != nil {
			b.failed[host] = fmt.Errorf("%s: %w", flagOf(host), err)
			pem = nil
		}
		b.pem[host] = pem
		_, _ = fmt.Fprintf(hash, "%q %x %v\n", host, sha256.Sum256(pem), err)
	}

	b.digest = [sha256.Size]byte(hash.Sum(nil))
	return b
}

// err returns the errors of the files.
func (b *bundles) err() error {
	var failed []error
	for _, host := range slices.Sorted(maps.Keys(b.failed)) {
		failed = append(failed, b.failed[host])
	}
	return errors.Join(failed...)
}

// errorOf returns why a registry cannot be verified.
func (b *bundles) errorOf(registry string) error {
	return cmp.Or(b.failed[""], b.failed[settingKey(registry)])
}

// flagOf names the flag of a bundle in messages.
func flagOf(host string) string {
	if host == "" {
		return "--registry-ca-file"
	}
	return "--registry-ca " + host
}

// readBundle reads a file of certificates within the limit. A file without any certificate is an
// error, because a wrong file would otherwise go unnoticed.
func readBundle(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authorities: %w", err)
	}

	defer func() { _ = f.Close() }()
	pem, err := io.ReadAll(io.LimitReader(f, limits.CertificateBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the certificate authorities: %w", err)
	case len(pem) > limits.CertificateBytes:
		return nil, fmt.Errorf("%s has more than %d bytes, the limit of certificate authorities", file, limits.CertificateBytes)
	case !x509.NewCertPool().AppendCertsFromPEM(pem):
		return nil, fmt.Errorf("%s has no certificate in PEM form", file)
	}

	return pem, nil
}

// pool returns the certificate authorities for a host, or nil for the system's.
func (b *bundles) pool(host string) *x509.CertPool {
	if len(b.pem[host]) == 0 && len(b.pem[""]) == 0 {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM(b.pem[""])
	pool.AppendCertsFromPEM(b.pem[host])
	return pool
}

// verified sends the requests of pulls from one registry. Each uses the certificate authorities for
// its host.
type verified struct {
	registry   string
	bundles    *bundles
	transports map[string]*http.Transport
}

// newVerified returns copies of base.
func newVerified(registry string, b *bundles, base *http.Transport) *verified {
	v := &verified{registry: registry, bundles: b, transports: map[string]*http.Transport{}}
	for host := range b.pem {
		v.transports[host] = withPool(base, b.pool(host))
	}
	if v.transports[""] == nil {
		v.transports[""] = withPool(base, nil)
	}
	return v
}

// withPool returns a copy of a transport that trusts a pool; nil means the system's.
func withPool(base *http.Transport, pool *x509.CertPool) *http.Transport {
	own := base.Clone()
	own.TLSClientConfig.RootCAs = pool
	return own
}

// RoundTrip implements http.RoundTripper.
func (v *verified) RoundTrip(r *http.Request) (*http.Response, error) {
	host, _ := hostOfSetting(v.transports, v.registry, r.URL.Host)
	if err := v.bundles.failed[host]; err != nil {
		return nil, failf(ReasonLocal, bundleRemedy, "%v", err)
	}
	return v.transports[host].RoundTrip(r)
}

// CloseIdleConnections closes the idle connections of all transports.
func (v *verified) CloseIdleConnections() {
	for _, t := range v.transports {
		t.CloseIdleConnections()
	}
}

// bundleRemedy is the remedy for an unreadable file.
const bundleRemedy = "Correct the file; it is read again for every pull."

// Transport returns base with the proxy and the certificate authorities of a registry. It does not
// verify what base does not verify.
func (o Options) Transport(registry string, base *http.Transport) (http.RoundTripper, error) {
	o.setDefaults()
	b := o.bundles()
	if err := b.errorOf(registry); err != nil {
		return nil, err
	}

	base.Proxy = o.proxyOf(registry)
	base.OnProxyConnectResponse = func(_ context.Context, proxy *url.URL, connect *http.Request, resp *http.Response) error {
		if failed := checkAnswer(proxy.Host, connect.Host, resp.StatusCode); failed != nil {
			return fmt.Errorf("%w. %s", failed, failed.remedy)
		}
		return nil
	}

	return newVerified(registry, b, base), nil
}
