package packages

import "sync"

// pool runs functions in the background, a few at a time for each registry, so
// that one that hangs holds up only its own packages. What waits costs no
// goroutine: after a start ten thousand packages may be waiting.
type pool struct {
	perHost int

	mu    sync.Mutex
	hosts map[string]*lane
}

// lane is the work for one registry.
type lane struct {
	running int
	waiting []func()
}

// run calls f as soon as its registry has room.
func (p *pool) run(host string, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts == nil {
		p.hosts = map[string]*lane{}
	}
	l := p.hosts[host]
	if l == nil {
		l = &lane{}
		p.hosts[host] = l
	}
	if l.running >= p.perHost {
		l.waiting = append(l.waiting, f)
		return
	}
	l.running++
	go p.work(host, l, f)
}

// work calls f and then whatever waits for the same registry.
func (p *pool) work(host string, l *lane, f func()) {
	for f != nil {
		f()
		f = p.next(host, l)
	}
}

func (p *pool) next(host string, l *lane) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(l.waiting) == 0 {
		if l.running--; l.running == 0 {
			delete(p.hosts, host)
		}
		return nil
	}
	f := l.waiting[0]
	l.waiting[0], l.waiting = nil, l.waiting[1:]
	return f
}
