package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/objects"
)

// Runner performs do(0) to do(n-1) for an owner, in any order or in parallel, and returns when all
// started ones have ended. Tasks that have not started when ctx ends are dropped.
type Runner interface {
	Run(ctx context.Context, owner objects.OwnerKey, background bool, n int, do func(i int))
}

// Pool is a Runner that runs tasks for many owners, at most a fixed number at a time. It serves
// namespaces in round robin, and so the owners of a namespace: an owner with ten thousand objects
// does not hold up one with five, and a namespace with a thousand owners does not hold up one with
// a single owner. A namespace gets at most a share of the places, so that its slow tasks leave some
// to others; cluster-scoped owners can get all. Background tasks run only while no other waits.
type Pool struct{ places *queueing.Semaphore }

// NewPool returns a pool that runs size tasks at a time, at most share of them for one namespace.
func NewPool(size, share int) *Pool {
	return &Pool{places: queueing.NewSemaphore(int64(size), int64(share))}
}

// Run performs tasks of an owner.
func (p *Pool) Run(ctx context.Context, owner objects.OwnerKey, background bool, n int, do func(i int)) {
	var pending sync.WaitGroup
	pending.Add(n)
	var begun atomic.Int64
	p.places.Start(owner.Namespace, "work for "+owner.String(), background, n, func() {
		defer pending.Done()
		defer queueing.Progress(ctx)
		if ctx.Err() == nil { // the caller handles a panic, which does not end other work
			do(int(begun.Add(1) - 1))
		}
	})
	pending.Wait()
}
