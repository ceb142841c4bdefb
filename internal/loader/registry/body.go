package registry

import (
	"context"
	"io"

	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/limits"
)

// bounded limits the length of a body, and how slowly it can arrive.
func (p *Puller) bounded(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser) io.ReadCloser {
	// Requests of the registry client itself, for tokens, have the limit of a manifest.
	limit, stall := int64(limits.ImageManifestBytes), p.opts.Timeouts.Stall
	if n, ok := ctx.Value(bodyLimitKey{}).(int64); ok {
		limit = n
	}
	stalled := failf(ReasonTimeout, "", "the registry sent less than %d bytes in %v", limits.StallBytes, stall)
	stalled.temporary = true
	return outbound.NewBody(ctx, cancel, body, outbound.Bounds{
		Bytes: limit, TooLong: failf(ReasonLimit, "", "the registry sent more than %d bytes where at most that many are expected", limit),
		Stall: stall, Stalled: stalled,
	})
}

// bodyLimitKey is the key of the limit in a request's context. The transport below the registry
// client sees nothing else of the caller.
type bodyLimitKey struct{}

// withBodyLimit sets the limit of bodies for requests with the context.
func withBodyLimit(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, bodyLimitKey{}, n)
}
