package registry

import (
	"context"
	"errors"
	"io"
	"time"

	"lockstep.run/lockstep/internal/limits"
)

// boundedBody fails when a body is too long, or too slow. Only time spent in Read counts.
type boundedBody struct {
	body        io.ReadCloser
	ctx         context.Context
	cancel      context.CancelCauseFunc
	limit, left int64

	stall, waited time.Duration
	got           int
}

func (b *boundedBody) Read(buf []byte) (int, error) {
	timer := time.AfterFunc(b.stall-b.waited, func() {
		stalled := failf(ReasonTimeout, "", "the registry sent less than %d bytes in %v", limits.StallBytes, b.stall)
		stalled.temporary = true
		b.cancel(stalled)
	})
	start := time.Now()
	n, err := b.body.Read(buf)
	timer.Stop()
	b.waited += time.Since(start)
	if b.got += n; b.got >= limits.StallBytes {
		b.got, b.waited = 0, 0
	}
	if b.left -= int64(n); b.left < 0 {
		return n, failf(ReasonLimit, "", "the registry sent more than %d bytes where at most that many are expected", b.limit)
	}
	if cause := context.Cause(b.ctx); err != nil && !errors.Is(err, io.EOF) && cause != nil {
		err = cause
	}
	return n, err
}

func (b *boundedBody) Close() error {
	err := b.body.Close()
	b.cancel(nil)
	return err
}

type bodyLimitKey struct{}

func withBodyLimit(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, bodyLimitKey{}, n)
}

func bodyLimit(ctx context.Context) int64 {
	if n, ok := ctx.Value(bodyLimitKey{}).(int64); ok {
		return n
	}
	return limits.ImageManifestBytes
}
