package rollout

import (
	"context"
	"sync"

	"lockstep.run/lockstep/internal/kube/panics"
)

// Runner performs do(0) to do(n-1) for an owner, in any order or in parallel, and returns
// when all that were begun have ended. Tasks that have not begun when ctx ends are dropped.
type Runner interface {
	Run(ctx context.Context, owner string, background bool, n int, do func(i int))
}

// Pool is a Runner that runs tasks for many owners, at most a fixed number at a time, and takes
// them from the owners in turn: one with ten thousand objects does not hold up
// one with five. Background tasks run only while nothing else waits.
type Pool struct {
	mu       sync.Mutex
	free     int
	urgent   queue
	deferred queue
}

// NewPool returns a pool that runs size tasks at a time.
func NewPool(size int) *Pool {
	return &Pool{free: size, urgent: newQueue(), deferred: newQueue()}
}

// Run performs tasks of an owner.
func (p *Pool) Run(ctx context.Context, owner string, background bool, n int, do func(i int)) {
	var pending sync.WaitGroup
	pending.Add(n)
	for i := range n {
		p.submit(owner, background, func() {
			defer pending.Done()
			if ctx.Err() == nil { // a panic is what the caller makes of it, and ends nobody else's work
				_ = panics.Guard(ctx, "work for "+owner, func() error { do(i); return nil })
			}
		})
	}
	pending.Wait()
}

func (p *Pool) submit(owner string, background bool, task func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free > 0 {
		p.free--
		panics.Go(context.Background(), "work of a pool", func() { p.work(task) })
		return
	}
	q := &p.urgent
	if background {
		q = &p.deferred
	}
	q.push(owner, task)
}

// work performs a task, and then what waits, until nothing does.
func (p *Pool) work(task func()) {
	for task != nil {
		task()
		task = p.next()
	}
}

func (p *Pool) next() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if task := p.urgent.pop(); task != nil {
		return task
	}
	if task := p.deferred.pop(); task != nil {
		return task
	}
	p.free++
	return nil
}

// queue holds tasks by owner, first in first out, and serves owners in turn.
type queue struct {
	turns   []string
	byOwner map[string][]func()
}

func newQueue() queue { return queue{byOwner: map[string][]func(){}} }

func (q *queue) push(owner string, task func()) {
	if len(q.byOwner[owner]) == 0 {
		q.turns = append(q.turns, owner)
	}
	q.byOwner[owner] = append(q.byOwner[owner], task)
}

func (q *queue) pop() func() {
	if len(q.turns) == 0 {
		return nil
	}
	owner := q.turns[0]
	q.turns = q.turns[1:]
	tasks := q.byOwner[owner]
	task := tasks[0]
	tasks[0] = nil // what it holds is not held for as long as the others wait
	if rest := tasks[1:]; len(rest) > 0 {
		q.byOwner[owner] = rest
		q.turns = append(q.turns, owner)
	} else {
		delete(q.byOwner, owner)
	}
	return task
}
