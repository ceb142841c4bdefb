package outbound

import (
	"context"
	"errors"
	"io"
	"time"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
)

// Bounds of a body, and the errors for a body beyond them.
type Bounds struct {
	Bytes   int64
	TooLong error
	// Stall is the time limit for each limits.StallBytes of the body.
	Stall   time.Duration
	Stalled error
}

// Body is a body within bounds. Only time spent in Read counts.
type Body struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	bounds Bounds

	left   int64
	waited time.Duration
	got    int
}

// NewBody bounds the body of a request with that context.
func NewBody(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser, bounds Bounds) *Body {
	return &Body{body: body, ctx: ctx, cancel: cancel, bounds: bounds, left: bounds.Bytes}
}

// Read implements io.Reader.
func (b *Body) Read(buf []byte) (int, error) {
	timer := panics.After(b.bounds.Stall-b.waited, "ending a stalled response", func() { b.cancel(b.bounds.Stalled) })
	start := time.Now()
	n, err := b.body.Read(buf)
	timer.Stop()
	b.waited += time.Since(start)
	if b.got += n; b.got >= limits.StallBytes {
		b.got, b.waited = 0, 0
	}
	if b.left -= int64(n); b.left < 0 {
		return n, b.bounds.TooLong
	}
	if cause := context.Cause(b.ctx); err != nil && !errors.Is(err, io.EOF) && cause != nil {
		err = cause
	}

	return n, err
}

// Close implements io.Closer. It ends the request.
func (b *Body) Close() error {
	err := b.body.Close()
	b.cancel(nil)
	return err
}
