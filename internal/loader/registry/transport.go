package registry

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"lockstep.run/lockstep/internal/limits"
)

const (
	registryIdle          = 15 * time.Second // for idle connections; firewalls and load balancers keep them longer
	registryConnectionAge = 5 * time.Minute  // until connections are replaced
)

// guard is the innermost round tripper. It also sees redirects and requests to token services.
type guard struct {
	p          *Puller
	key        guardKey
	dialer     *dialer
	verified   *verified
	unverified *http.Transport
	plain      atomic.Pointer[tls.RecordHeaderError]
}

// guardOf returns the guard of a registry. Pulls share its connections, because a TLS handshake is
// costly. Pulls for namespaced packages do not share connections with pulls for cluster-scoped
// ones.
func (p *Puller) guardOf(registryHost string) (*guard, error) {
	bundles := p.opts.bundles()
	if err := bundles.errorOf(registryHost); err != nil {
		return nil, err
	}
	key := guardKey{host: registryHost, bundle: bundles.digest, namespaced: p.access.namespaced()}
	if g, found := p.guards.Get(key); found {
		return g.(*guard), nil
	}
	g := p.newGuard(key, bundles)
	p.guards.Add(key, g, registryConnectionAge)
	return g, nil
}

// newGuard returns a guard with transports of its own.
func (p *Puller) newGuard(key guardKey, bundles *bundles) *guard {
	d := &dialer{registry: hostname(key.host), policy: p.opts.Policy, namespaced: key.namespaced, named: p.named}
	d.Timeout, d.ProxyOf, d.Check = p.opts.Timeouts.Connect, p.opts.proxyOf(key.host), d.check
	base := &http.Transport{
		Proxy: d.Proxy,
		OnProxyConnectResponse: func(_ context.Context, proxy *url.URL, connect *http.Request, resp *http.Response) error {
			if failed := checkAnswer(proxy.Host, connect.Host, resp.StatusCode); failed != nil {
				return failed
			}
			return nil
		},
		DialContext:            d.Dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    p.opts.Timeouts.Connect,
		ResponseHeaderTimeout:  p.opts.Timeouts.Header,
		MaxResponseHeaderBytes: limits.ResponseHeaderBytes,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        registryIdle,
		ForceAttemptHTTP2:      true,
		// Digests cover the body as it is sent.
		DisableCompression: true,
	}

	g := &guard{p: p, key: key, dialer: d, verified: newVerified(key.host, bundles, base), unverified: base}
	g.unverified.TLSClientConfig.InsecureSkipVerify = true // Only for hosts that the administrator named.
	d.renew = func() {
		g.verified.CloseIdleConnections()
		g.unverified.CloseIdleConnections()
	}
	return g
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) { return throttled(r, g.send) }

// send refuses insecure requests, and bounds the body of the response.
func (g *guard) send(r *http.Request) (*http.Response, error) {
	insecure := g.p.insecure[r.URL.Host]
	switch {
	case r.URL.Scheme != "https" && r.URL.Scheme != "http":
		return nil, failf(ReasonForbiddenAddress, "", "the scheme %q is not HTTPS", r.URL.Scheme)
	case r.URL.Scheme == "http" && !insecure:
		return nil, failf(ReasonInsecure, "Serve it by HTTPS, or name this host by --insecure-registry.",
			"%s would be reached by plain HTTP", r.URL.Host)
	}

	transport := http.RoundTripper(g.verified)
	if insecure {
		transport = g.unverified
	}

	tryPlain := insecure && r.URL.Scheme == "https" && r.URL.Host == g.key.host
	if plain := g.plain.Load(); tryPlain && plain != nil {
		return nil, *plain
	}

	ctx, cancel := context.WithCancelCause(r.Context())
	resp, err := transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel(nil)
		var noTLS tls.RecordHeaderError
		// The registry client falls back to plain HTTP after this error. Remembering the error
		// saves the next requests a handshake.
		if tryPlain && errors.As(err, &noTLS) && string(noTLS.RecordHeader[:]) == "HTTP/" {
			g.plain.Store(&noTLS)
		}
		return nil, err
	}

	resp.Body = g.p.bounded(ctx, cancel, resp.Body)
	return resp, nil
}

// checkRedirect bounds redirects. The guard and the dialer check each target.
func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) > limits.Redirects {
		return failf(ReasonLimit, "", "the registry redirects more than %d times", limits.Redirects)
	}
	return nil
}

// guardKey is the common property of pulls that share connections. A connection carries no
// credentials.
type guardKey struct {
	host string
	// bundle is the digest of the certificate authorities on disk.
	bundle     [sha256.Size]byte
	namespaced bool
}
