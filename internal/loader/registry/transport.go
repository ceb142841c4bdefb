package registry

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"lockstep.run/lockstep/internal/limits"
)

// guard is the innermost round tripper of one pull at a time. It sees every
// request, those that redirects and token services lead to included.
type guard struct {
	p        *Puller
	key      guardKey
	dialer   *dialer
	verified *http.Transport
	// unverified serves the hosts that were named as insecure.
	unverified *http.Transport
	// plain is set once the registry has answered HTTPS by plain HTTP. Where it was
	// named as insecure, HTTPS is tried before plain HTTP, and need not be each time.
	plain atomic.Pointer[tls.RecordHeaderError]

	made time.Time
	// expiry ends the wait for another pull.
	expiry *time.Timer
}

// guardOf returns the guard for a pull from a registry: that of an earlier one, or
// a new one.
func (p *Puller) guardOf(registryHost string) (*guard, error) {
	bundle, err := p.opts.bundle()
	if err != nil {
		return nil, failf(ReasonLocal, "", "%v", err)
	}
	key := guardKey{host: registryHost, bundle: sha256.Sum256(bundle)}
	if g := p.guards.take(key); g != nil {
		return g, nil
	}
	roots, err := p.opts.roots(bundle)
	if err != nil {
		return nil, failf(ReasonLocal, "", "%v", err)
	}
	g := p.newGuard(registryHost, roots)
	g.key = key
	return g, nil
}

func (p *Puller) newGuard(registryHost string, roots *x509.CertPool) *guard {
	d := &dialer{registry: hostname(registryHost), timeout: p.opts.Timeouts.Connect}
	base := &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			proxy, err := p.opts.Proxy(r)
			if err == nil && proxy != nil {
				d.allowProxy(proxy)
			}
			return proxy, err
		},
		DialContext:            d.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    p.opts.Timeouts.Connect,
		ResponseHeaderTimeout:  p.opts.Timeouts.Header,
		MaxResponseHeaderBytes: limits.ResponseHeaderBytes,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        limits.RegistryIdle,
		ForceAttemptHTTP2:      true,
		// A body has to be what its digest says, not what it decompresses to.
		DisableCompression: true,
	}
	g := &guard{p: p, dialer: d, verified: base, unverified: base.Clone(), made: time.Now()}
	g.unverified.TLSClientConfig.InsecureSkipVerify = true //nolint:gosec // Only for hosts that the administrator named.
	d.renew = g.close
	return g
}

func (g *guard) close() {
	g.verified.CloseIdleConnections()
	g.unverified.CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	insecure := g.p.insecure[r.URL.Host]
	switch {
	case r.URL.Scheme == "https":
	case r.URL.Scheme == "http" && insecure:
	case r.URL.Scheme == "http":
		return nil, failf(ReasonInsecure, "Serve it by HTTPS, or name this host as an insecure registry.",
			"%s would be reached by plain HTTP", r.URL.Host)
	default:
		return nil, failf(ReasonForbiddenAddress, "", "the scheme %q is not HTTPS", r.URL.Scheme)
	}
	transport := g.verified
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
		if tryPlain && errors.As(err, &noTLS) && string(noTLS.RecordHeader[:]) == "HTTP/" {
			g.plain.Store(&noTLS)
		}
		return nil, err
	}
	resp.Body = &boundedBody{
		body: resp.Body, ctx: ctx, cancel: cancel,
		limit: bodyLimit(r.Context()), left: bodyLimit(r.Context()), stall: g.p.opts.Timeouts.Stall,
	}
	return resp, nil
}

type bodyLimitKey struct{}

// withBodyLimit sets how long the bodies of requests may be.
func withBodyLimit(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, bodyLimitKey{}, n)
}

func bodyLimit(ctx context.Context) int64 {
	if n, ok := ctx.Value(bodyLimitKey{}).(int64); ok {
		return n
	}
	return limits.ImageManifestBytes
}

// checkRedirect bounds redirects. Where they may lead is the guard's concern.
func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) > limits.Redirects {
		return failf(ReasonLimit, "", "the registry redirects more than %d times", limits.Redirects)
	}
	return nil
}
