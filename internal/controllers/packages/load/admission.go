package load

import (
	"context"
	"errors"
	"slices"
	"sync"

	"lockstep.run/lockstep/internal/limits"
)

// rooms are the limits of the bytes in the files of a package, one per attempt to load it. A larger
// package is loaded again with the next limit. Up to the first one, a package takes little memory;
// the last one is the maximum.
var rooms = [...]int64{limits.SmallPackageBytes, limits.LargePackageBytes, limits.PackageBytes}

// roomOf returns the room of an attempt; zero for the last one.
func (p *Pipeline) roomOf(size int) int64 {
	if size >= len(rooms)-1 || rooms[size] >= p.Memory.PackageBytes() {
		return 0
	}
	return rooms[size]
}

// weightOf returns how much memory an attempt can take.
func (p *Pipeline) weightOf(size int) int64 {
	room := p.roomOf(size)
	if room == 0 {
		room = p.Memory.PackageBytes()
	}
	return limits.LoadWeight * room
}

// admission is the place of one load among all, and memory if it is not small. It is entered after
// the download, when only other loads are waited for, and before any content is in memory. It is
// safe for concurrent use.
type admission struct {
	pipeline *Pipeline
	in       Request
	// load is the context of the load, which waits for it.
	load context.Context

	mu   sync.Mutex
	over bool
	// ctx is the context of the work, once the place was entered.
	ctx context.Context
	end []func()
}

// errLoadEnded is the cause for work that outlives its load.
var errLoadEnded = errors.New("the load has ended")

// enter enters the place, once. It acquires memory first, because a load that has a place must not
// wait.
func (a *admission) enter() error {
	a.mu.Lock()
	entered, over := a.ctx != nil, a.over
	a.mu.Unlock()
	switch {
	case over:
		return errLoadEnded
	case entered:
		return nil
	}

	namespace := a.in.Pkg.GetNamespace()
	var end []func()
	if a.in.Size > 0 {
		release, err := a.pipeline.Memory.Acquire(a.load, namespace, a.pipeline.weightOf(a.in.Size))
		if err != nil {
			return err
		}
		end = append(end, release)
	}

	within, leave, err := a.pipeline.rendering.Enter(a.load, namespace, a.in.Long || a.pipeline.roomOf(a.in.Size) == 0)
	if err != nil {
		runAll(end)
		return err
	}

	end = append(end, leave)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		runAll(end)
		return errLoadEnded
	}

	a.ctx, a.end = within, end
	return nil
}

// pause gives the place back until it is entered again, because a load that holds it must not wait
// for anything else.
func (a *admission) pause() {
	a.mu.Lock()
	defer a.mu.Unlock()
	runAll(a.end)
	a.ctx, a.end = nil, nil
}

// leave ends the load. Work that continues for another load does not enter again.
func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	runAll(a.end)
	a.end = nil
}

// runAll calls functions in reverse order, like deferred ones.
func runAll(all []func()) {
	for _, f := range slices.Backward(all) {
		f()
	}
}
