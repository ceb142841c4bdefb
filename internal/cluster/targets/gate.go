package targets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"golang.org/x/time/rate"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/outbound"
)

// ErrAway is the error of requests to a target that is not connected.
var ErrAway = errors.New("the target is not connected")

// gate is the transport of one session. It is safe for concurrent use.
type gate struct {
	// next adds the credentials.
	next   http.RoundTripper
	limit  *rate.Limiter
	closed atomic.Bool
	// suspect is called when a request suggests that the target is away. It must not block.
	suspect func()
}

func newGate(next http.RoundTripper, suspect func()) *gate {
	return &gate{next: next, limit: rate.NewLimiter(limits.TargetQPS, limits.TargetBurst), suspect: suspect}
}

// RoundTrip sends a request while the gate is open.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.closed.Load() {
		closeBody(r)
		return nil, ErrAway
	}
	watches := r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1"
	if !watches {
		if err := g.limit.Wait(r.Context()); err != nil {
			closeBody(r)
			return nil, err
		}
	}
	resp, err := g.send(r, watches)
	if err != nil && r.Context().Err() == nil || err == nil && resp.StatusCode == http.StatusUnauthorized {
		g.suspect()
	}
	return resp, err
}

// send bounds a request in time and its answer in size. A watch ends with its context.
func (g *gate) send(r *http.Request, watches bool) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	resp, err := g.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified {
		_ = resp.Body.Close()
		cancel(nil)
		return nil, fmt.Errorf("the server redirects, which API servers do not (status %d)", resp.StatusCode)
	}
	if watches {
		resp.Body = &untilClosed{resp.Body, cancel}
		return resp, nil
	}
	resp.Body = outbound.NewBody(ctx, cancel, resp.Body, outbound.Bounds{
		Bytes: limits.TargetResponseBytes, TooLong: fmt.Errorf("the answer is larger than the limit of %d bytes", limits.TargetResponseBytes),
		Stall: limits.TargetRequestTimeout, Stalled: fmt.Errorf("the answer stalls: fewer than %d bytes in %s", limits.StallBytes, limits.TargetRequestTimeout),
	})
	return resp, nil
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // a RoundTripper closes it also when it fails
	}
}

// untilClosed ends the context of a request with its body.
type untilClosed struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements io.Closer.
func (b *untilClosed) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
