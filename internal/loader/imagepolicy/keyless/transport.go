package keyless

import (
	"context"
	"fmt"
	"net/http"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/outbound"
)

// transport performs the requests of one signature, and bounds their answers.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// newTransport returns one whose requests end with a context, as the library's do not have it. release closes its connections.
func newTransport(ctx context.Context) (bounded transport, release func()) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxResponseHeaderBytes = limits.SigningHeaderBytes
	return func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		response, err := base.RoundTrip(r.WithContext(ctx))
		if err != nil {
			cancel(nil)
			return nil, err
		}
		// Without a redirect, a token reaches one server; the library reads nothing of an answer of 429, or of 500 and more.
		if code := response.StatusCode; code >= 300 && code < 400 || code == http.StatusTooManyRequests || code >= 500 {
			response.Body.Close()
			cancel(nil)
			return nil, fmt.Errorf("it answered %d %s", code, http.StatusText(code))
		}
		response.Body = outbound.NewBody(ctx, cancel, response.Body, outbound.Bounds{
			Bytes: limits.SigningAnswerBytes, TooLong: fmt.Errorf("it answered with more than %d bytes", limits.SigningAnswerBytes),
			Stall: limits.SigningTime, Stalled: errSlow,
		})
		return response, nil
	}, base.CloseIdleConnections
}
