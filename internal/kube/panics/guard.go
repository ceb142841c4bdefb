package panics

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
)

// Guard calls f, and returns a panic of it as an error, which is logged.
func Guard(ctx context.Context, doing string, f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = Recovered(logger(ctx), cause, doing)
		}
	}()
	return f()
}

// logger returns the context's logger, or else client-go's, which is the manager's.
func logger(ctx context.Context) logr.Logger {
	if log, err := logr.FromContext(ctx); err == nil {
		return log
	}
	return klog.Background()
}

// Go calls f on a goroutine of its own, and logs a panic of it.
func Go(ctx context.Context, doing string, f func()) {
	go func() { _ = Guard(ctx, doing, func() error { f(); return nil }) }()
}

// After calls f on a goroutine of its own after d, and logs a panic of it.
func After(d time.Duration, doing string, f func()) *time.Timer {
	return time.AfterFunc(d, func() { _ = Guard(context.Background(), doing, func() error { f(); return nil }) })
}

// Group is an errgroup.Group that returns the panic of a function as its error.
type Group struct {
	ctx   context.Context // of the functions
	doing string
	group *errgroup.Group
}

// NewGroup returns a Group of at most so many functions at a time, and a context that ends with the
// first error.
func NewGroup(ctx context.Context, most int, doing string) (*Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(most)
	return &Group{ctx, doing, group}, ctx
}

// Go calls f on a goroutine of its own, as soon as there is room.
func (g *Group) Go(f func() error) {
	g.group.Go(func() error { return Guard(g.ctx, g.doing, f) })
}

// Wait waits for all functions, and returns the first error.
func (g *Group) Wait() error { return g.group.Wait() }
