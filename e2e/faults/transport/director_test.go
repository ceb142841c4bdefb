package transport_test

import (
	"slices"
	"sync"

	"lockstep.run/lockstep/e2e/faults/gateway"
	"lockstep.run/lockstep/e2e/sandbox"
)

// director lets each life decide about the requests for its package. Other reads get the
// faults of the current start.
type director struct {
	lives map[string]*life // by namespace

	mu        sync.Mutex
	revisions map[string]int64 // by the request's ID in the audit log
	// starts are the faults of each future start, armed the remaining ones of the
	// current start.
	starts [][]fault
	armed  []fault
	// calm means that the next start meets no fault.
	calm   bool
	counts counter
	seen   []position
	hits   []fault
}

func newDirector(lives []*life, starts [][]fault) *director {
	d := &director{lives: map[string]*life{}, revisions: map[string]int64{}, starts: starts}
	for _, l := range lives {
		d.lives[l.namespace] = l
	}
	return d
}

// arm arms the faults of the next start. Faults that were not injected in the previous one,
// because it was killed too early, are retried after all others.
func (d *director) arm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.armed) > 0 {
		d.starts = append(d.starts, d.armed)
	}
	d.armed, d.counts = nil, counter{}
	calm := d.calm
	d.calm = false
	if len(d.starts) > 0 && !calm {
		d.armed, d.starts = d.starts[0], d.starts[1:]
	}
}

// spare keeps faults from the next start.
func (d *director) spare() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calm = true
}

// left returns the faults of starts that met nothing.
func (d *director) left() []fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(slices.Concat(d.starts...), d.armed...)
}

func (d *director) Request(q *gateway.Request) gateway.Decision {
	if l := d.lives[q.Namespace]; l != nil {
		d.note(q)
		return l.request(q)
	}
	if q.Writes() || q.Namespace != "" || q.Resource == "leases" {
		return gateway.Decision{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	name := q.Path
	switch {
	case q.Resource != "" && q.Name == "":
		name = "all " + resourceOf(q)
	case q.Resource != "":
		name = resourceOf(q)
	case q.Other:
		name += thereSuffix
	}
	p := d.counts.next(startStage, readPrefix+name, "")
	d.seen = append(d.seen, p)
	i := slices.IndexFunc(d.armed, func(f fault) bool { return f.position == p })
	if i < 0 {
		return gateway.Decision{}
	}
	f := d.armed[i]
	d.armed = slices.Delete(d.armed, i, i+1)
	d.hits = append(d.hits, f)
	return gateway.Decision{Fault: f.Fault, For: f.length}
}

// note remembers the revision that a write belongs to.
func (d *director) note(q *gateway.Request) {
	if q.Revision != 0 {
		d.mu.Lock()
		d.revisions[q.ID()] = q.Revision
		d.mu.Unlock()
	}
}

func (d *director) Answered(q *gateway.Request, code int) {
	if l := d.lives[q.Namespace]; l != nil {
		l.answered(q, code)
	}
}

func (d *director) Ended(q *gateway.Request) {
	if l := d.lives[q.Namespace]; l != nil {
		l.over()
	}
}

func (d *director) Event(e *gateway.Event) gateway.Decision {
	if l := d.lives[e.Object.Metadata.Namespace]; l != nil {
		return l.event(e)
	}
	return gateway.Decision{}
}

// revision returns the revision that a logged write belongs to.
func (d *director) revision(e sandbox.Entry) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.revisions[e.ID]
}
