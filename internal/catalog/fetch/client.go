package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/limits"
)

// client sends the requests of one fetch: to one server, and to the targets of its redirects.
type client struct {
	http.Client
	opts   Options
	server *url.URL
	// authorization is the header for the server. It is never sent to others.
	authorization string
	transport     *http.Transport
}

// client returns a client for a source. namespaced means that the source's object is in a
// namespace.
func (f *Fetcher) client(field string, server *url.URL, c credentials, namespaced bool) (*client, error) {
	roots, err := c.roots()
	if err != nil {
		return nil, err
	}

	authorization, err := c.authorization()
	if err != nil {
		return nil, err
	}
	if authorization != "" && server.Scheme != "https" && !f.opts.Policy.Local {
		return nil, permanent("Use https.", "%s: the credentials of the Secret %q would be sent by plain HTTP", field, c.name)
	}

	own := &client{opts: f.opts, server: server, authorization: authorization}
	dialer := f.dialer(namespaced)
	own.transport = &http.Transport{
		Proxy:                  dialer.Proxy,
		DialContext:            dialer.Dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    limits.ConnectTimeout,
		ResponseHeaderTimeout:  limits.ResponseHeaderTimeout,
		MaxResponseHeaderBytes: limits.ResponseHeaderBytes,
		ForceAttemptHTTP2:      true,
		// Lengths and digests describe the body as it is sent.
		DisableCompression: true,
	}

	own.Transport = roundTripper(own.roundTrip)
	own.CheckRedirect = own.checkRedirect
	return own, nil
}

// close ends the idle connections of the fetch. Each fetch makes a client of its own.
func (c *client) close() { c.transport.CloseIdleConnections() }

// roundTripper is a function as http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// roundTrip sends a single request, which can be a redirect. It adds the credentials only for the
// server of the source itself.
func (c *client) roundTrip(r *http.Request) (*http.Response, error) {
	if err := c.checkURL(r.URL); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancelCause(r.Context())
	r = r.Clone(ctx)
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", c.opts.UserAgent)
	}

	// Go's client sends the former URL, whose query can have credentials.
	r.Header.Del("Referer")
	if c.authorization != "" && r.URL.Scheme == c.server.Scheme && r.URL.Host == c.server.Host {
		r.Header.Set("Authorization", c.authorization)
	}

	resp, err := c.transport.RoundTrip(r)
	if err != nil {
		cancel(nil)
		return nil, err
	}

	resp.Body = outbound.NewBody(ctx, cancel, resp.Body, boundsOf(ctx, r.URL.Hostname()))
	return resp, nil
}

// checkURL refuses URLs that must not be requested.
func (c *client) checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return permanent("", "%s redirects to the scheme %.20q, which is not https", c.server.Host, u.Scheme)
	case u.Scheme == "http" && c.server.Scheme == "https" && !c.opts.Policy.Local:
		return permanent("Let it redirect to https.", "%s redirects to plain HTTP at %s", c.server.Host, u.Host)
	}
	return nil
}

// checkRedirect bounds redirects. Each target is checked by roundTrip and by the dialer.
func (c *client) checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) > limits.Redirects {
		return permanent("Name the address that it leads to.", "%s redirects more than %d times", c.server.Host, limits.Redirects)
	}
	return nil
}

// dialer connects for a source. namespaced means that the source's object is in a namespace.
func (f *Fetcher) dialer(namespaced bool) *outbound.Dialer {
	return &outbound.Dialer{ProxyOf: f.opts.Proxy, Check: func(hostport string, ip outbound.Address, _ bool) error {
		host, _, err := net.SplitHostPort(hostport)
		if err != nil {
			return err
		}
		switch refused := f.opts.Policy.Refuses(ip, namespaced); refused {
		case "":
			return nil
		case outbound.RefusedPrivate:
			return permanent(outbound.PrivateRemedy, notFetched, refused.At(host, ip))
		default:
			return permanent("If that is intended, start the manager with --allow-local-sources.", notFetched, refused.At(host, ip))
		}
	}}
}

// notFetched is the error of addresses of the manager's own pod and node, of cloud services and, for
// namespaced repositories, of private addresses.
const notFetched = "%s, which sources may not be fetched from"

// bodyLimitKey is the key of withBodyLimit.
type bodyLimitKey struct{}

// withBodyLimit limits the size of answers to requests with this context.
func withBodyLimit(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, bodyLimitKey{}, n)
}

// boundsOf returns the limits of a body, which ends as well if it arrives too slowly.
func boundsOf(ctx context.Context, host string) outbound.Bounds {
	limit, ok := ctx.Value(bodyLimitKey{}).(int64)
	if !ok {
		limit = limits.DownloadBytes
	}
	return outbound.Bounds{
		Bytes: limit, TooLong: permanent("Make the repository smaller.", "%s sent more than %d bytes, the limit", host, limit),
		Stall: limits.StallTimeout, Stalled: &Error{Details: fmt.Sprintf("%s sent less than %d bytes in %v", host, limits.StallBytes, limits.StallTimeout)},
	}
}

// errFetchTime is the cause of the context after limits.FetchTime.
var errFetchTime = errors.New("fetch timeout")

// classify turns a connection error into an error of this package, except the caller's
// cancellation.
func classify(ctx context.Context, where string, c credentials, err error) error {
	var (
		own      *Error
		network  net.Error
		address  *url.Error
		badCert  *tls.CertificateVerificationError
		badAlert tls.AlertError
		noName   *net.DNSError
	)
	if errors.As(err, &address) {
		err = address.Err // its text contains the URL
	}

	shown := outbound.Redact(err.Error(), c.values()...)
	switch {
	case errors.As(err, &own):
		return &Error{Details: where + ": " + c.hide(own.Details), Remedy: own.Remedy, Permanent: own.Permanent, Err: own.Err}
	case errors.Is(context.Cause(ctx), errFetchTime):
		return &Error{Details: fmt.Sprintf("%s: it took longer than %v", where, limits.FetchTime)}
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", where, context.Cause(ctx))
	case errors.As(err, &badCert), errors.As(err, &badAlert):
		return permanent("Put the certificate authority into the key ca.crt of the Secret that secretRef names.", "%s: %s", where, shown)
	case errors.As(err, &noName):
		return &Error{Details: fmt.Sprintf("%s: %s", where, shown), Remedy: "Check the host."}
	case errors.As(err, &network) && network.Timeout():
		return &Error{Details: fmt.Sprintf("%s: no answer in time: %s", where, shown)}
	}

	return &Error{Details: fmt.Sprintf("%s: %s", where, shown)}
}

// roots returns the certificate authorities, or nil for the system's.
func (c credentials) roots() (*x509.CertPool, error) {
	pem := c.data["ca.crt"]
	if len(pem) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, permanent("Put a certificate in PEM form there.", "%s: the key ca.crt of the Secret %q has no certificate", c.field, c.name)
	}
	return pool, nil
}
