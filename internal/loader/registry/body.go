package registry

import (
	"context"
	"errors"
	"io"
	"time"

	"lockstep.run/lockstep/internal/limits"
)

// boundedBody ends a body that is too long, or that makes less progress than
// limits.StallBytes in the stall time. Only time spent in Read counts.
type boundedBody struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	limit  int64
	left   int64

	stall  time.Duration
	waited time.Duration
	got    int
}

func (b *boundedBody) Read(buf []byte) (int, error) {
	timer := time.AfterFunc(b.stall-b.waited, func() {
		b.cancel(&failure{
			reason: ReasonTimeout, temporary: true,
			details: "the registry sent less than " + sizeText(limits.StallBytes) + " in " + b.stall.String(),
		})
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
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (b *boundedBody) Close() error {
	err := b.body.Close()
	b.cancel(nil)
	return err
}
