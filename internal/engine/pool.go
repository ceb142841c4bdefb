package engine

import (
	"context"
	"slices"
	"sync"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/objects"
)

// Runner performs do(0) to do(n-1) for an owner, in any order or in parallel, and returns
// when all that were begun have ended. Tasks that have not begun when ctx ends are dropped.
type Runner interface {
	Run(ctx context.Context, owner objects.OwnerKey, background bool, n int, do func(i int))
}

// Pool is a Runner that runs tasks for many owners, at most a fixed number at a time, and
// takes them from the namespaces in turn, and from the owners of one in turn: one with
// ten thousand objects does not hold up one with five, nor a namespace with a thousand
// owners one with a single one. A namespace has at most a share of the places, so that
// its slow tasks leave some to others; cluster-scoped owners may have all. Background
// tasks run only while nothing else waits.
type Pool struct {
	mu       sync.Mutex
	free     int
	share    int
	running  map[string]int // by namespace
	urgent   queue
	deferred queue
}

// NewPool returns a pool that runs size tasks at a time, at most share of them of one namespace.
func NewPool(size, share int) *Pool {
	return &Pool{free: size, share: share, running: map[string]int{}}
}

// Run performs tasks of an owner.
func (p *Pool) Run(ctx context.Context, owner objects.OwnerKey, background bool, n int, do func(i int)) {
	var pending sync.WaitGroup
	pending.Add(n)
	for i := range n {
		p.submit(owner, background, func() {
			defer pending.Done()
			defer queueing.Progress(ctx)
			if ctx.Err() == nil { // a panic is what the caller makes of it, and ends no work of others
				_ = panics.Guard(ctx, "work for "+owner.String(), func() error { do(i); return nil })
			}
		})
	}
	pending.Wait()
}

func (p *Pool) submit(owner objects.OwnerKey, background bool, task func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.urgent
	if background {
		q = &p.deferred
	}
	q.push(owner, task)
	if p.free == 0 {
		return
	}
	if first, namespace := p.next(); first != nil {
		p.free--
		panics.Go(context.Background(), "work of a pool", func() { p.work(first, namespace) })
	}
}

// work performs a task, and then what waits, until nothing may begin.
func (p *Pool) work(task func(), namespace string) {
	for task != nil {
		task()
		task, namespace = p.done(namespace)
	}
}

// done gives the place of a task to what waits, if anything may have it.
func (p *Pool) done(namespace string) (task func(), next string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[namespace]--; p.running[namespace] == 0 {
		delete(p.running, namespace)
	}
	if task, next = p.next(); task == nil {
		p.free++
	}
	return task, next
}

// next takes the task whose turn it is; nil for none.
func (p *Pool) next() (task func(), namespace string) {
	may := func(namespace string) bool { return namespace == "" || p.running[namespace] < p.share }
	if task, namespace = p.urgent.pop(may); task == nil {
		task, namespace = p.deferred.pop(may)
	}
	if task != nil {
		p.running[namespace]++
	}
	return task, namespace
}

// queue holds tasks by namespace and owner, first in first out. The zero value is empty.
type queue struct {
	order  []string
	owners map[string]*queueing.Turns[func()]
}

func (q *queue) push(owner objects.OwnerKey, task func()) {
	of := q.owners[owner.Namespace]
	if of == nil {
		of = &queueing.Turns[func()]{}
		if q.owners == nil {
			q.owners = map[string]*queueing.Turns[func()]{}
		}
		q.owners[owner.Namespace] = of
		q.order = append(q.order, owner.Namespace)
	}
	of.Push(owner.String(), task)
}

// pop takes the first task of the first owner of the first namespace whose turn it may
// be.
func (q *queue) pop(may func(namespace string) bool) (task func(), namespace string) {
	at := slices.IndexFunc(q.order, may)
	if at < 0 {
		return nil, ""
	}
	namespace = q.order[at]
	q.order = slices.Delete(q.order, at, at+1)
	of := q.owners[namespace]
	task, _ = of.Take(0)
	if of.Len() == 0 {
		delete(q.owners, namespace)
	} else {
		q.order = append(q.order, namespace)
	}
	return task, namespace
}
