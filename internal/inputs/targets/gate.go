package targets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"

	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
)

const (
	targetQPS   = 100 // requests to one target per second, except watches; API servers also have their own limits
	targetBurst = 200 // burst of requests to one target
)

// ErrAway is the error of requests to a disconnected target.
var ErrAway = errors.New("the target is not connected")

// openAPI is the path of schemas below the path of the server.
const openAPI = "/openapi/v3/"

// gate is the transport of one session. It ends the session if an answer of the target exceeds a
// limit. It is safe for concurrent use.
type gate struct {
	// next adds the credentials.
	next   http.RoundTripper
	limit  *rate.Limiter
	closed atomic.Bool
	// suspect is called if a request suggests that the target is away. It must not block.
	suspect func()

	// large admits the large answers of all targets; nil admits all of them at once.
	large *queueing.Semaphore
	// holds is the session's share of the memory of all targets.
	holds holding

	mu sync.Mutex
	// excess is the limit that the target exceeded, or nil.
	excess error
	// stop ends the work in the session; nil before the session is opened.
	stop context.CancelFunc
	// pages counts the pages of each list that is being read, by path.
	pages map[string]int
}

func newGate(next http.RoundTripper, suspect func()) *gate {
	return &gate{next: next, limit: rate.NewLimiter(targetQPS, targetBurst), suspect: suspect, pages: map[string]int{}}
}

// exceeded ends the session, and returns the error.
func (g *gate) exceeded(err error) error {
	g.mu.Lock()
	first, stop := g.excess == nil, g.stop
	if first {
		g.excess = err
	}

	g.mu.Unlock()
	if !first {
		return err
	}

	g.closed.Store(true)
	if stop != nil {
		stop()
	}

	g.suspect()
	return err
}

// hold counts bytes of the target's answers that are kept, or released if bytes is negative.
func (g *gate) hold(bytes int64) {
	if !g.holds.change(bytes) {
		_ = g.exceeded(fmt.Errorf("its content needs more memory than %s can have along with other namespaces' targets: %s", whose(g.holds.key.Namespace), moreMemory))
	}
}

// moreMemory is the remedy if targets have too little memory.
const moreMemory = "keep less in the target, use fewer targets, or give the manager more memory, and GOMEMLIMIT with it"

// whose names the targets of a namespace in messages.
func whose(namespace string) string { return fmt.Sprintf("the targets of the namespace %s", namespace) }

// opened sets the function that ends the session.
func (g *gate) opened(stop context.CancelFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stop = stop; g.excess != nil {
		stop()
	}
}

// over returns the limit that the target exceeded, or nil.
func (g *gate) over() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.excess
}

// RoundTrip sends a request if the gate is open.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.closed.Load() {
		closeBody(r)
		return nil, ErrAway
	}

	query := r.URL.Query()
	watches := query.Get("watch") == "true" || query.Get("watch") == "1"
	if !watches {
		if err := g.page(r, query); err != nil {
			closeBody(r)
			return nil, err
		}
		if err := g.limit.Wait(r.Context()); err != nil {
			closeBody(r)
			return nil, err
		}
	}

	resp, err := g.send(r, watches, query.Get("limit"))
	if err != nil && r.Context().Err() == nil || err == nil && resp.StatusCode == http.StatusUnauthorized {
		g.suspect()
	}

	return resp, err
}

// page counts the pages of a list.
func (g *gate) page(r *http.Request, query url.Values) error {
	if r.Method != http.MethodGet || query.Get("limit") == "" {
		return nil
	}

	g.mu.Lock()
	if query.Get("continue") == "" {
		delete(g.pages, r.URL.Path)
	} else {
		g.pages[r.URL.Path]++
	}

	pages := g.pages[r.URL.Path]
	g.mu.Unlock()
	if pages < limits.TargetPages {
		return nil
	}

	return g.exceeded(fmt.Errorf("a list of the target has more than %d pages: delete unneeded objects there", limits.TargetPages))
}

// send bounds the time of a request and the size of its answer. A watch ends with its context.
func (g *gate) send(r *http.Request, watches bool, page string) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	resp, err := g.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}

	if resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified {
		_ = resp.Body.Close()
		cancel(nil)
		return nil, fmt.Errorf("the server redirects, which API servers do not (status %d)", resp.StatusCode)
	}

	bounded := &answer{ReadCloser: resp.Body, exceeded: g.exceeded, what: "an answer of the target", bytes: limits.TargetResponseBytes, values: limits.TargetResponseValues}
	switch {
	case watches, r.Method != http.MethodGet, page == "1":
		bounded.what, bounded.bytes, bounded.values = "an object of the target", limits.TargetObjectBytes, limits.TargetObjectValues
	case strings.Contains(r.URL.Path, openAPI):
		bounded.what, bounded.bytes, bounded.values = "a document of schemas of the target", limits.TargetDocumentBytes, limits.TargetDocumentValues
	}

	bounded.admission = &admission{of: g.large, namespace: g.holds.key.Namespace, ctx: ctx, cancel: cancel}
	if watches {
		bounded.held, bounded.hold = targetFreeLine, g.hold
	}
	if bounded.lines, bounded.asked = watches, page != "" && page != "1" && !watches; watches {
		resp.Body = &untilClosed{bounded, cancel}
		return resp, nil
	}

	resp.Body = outbound.NewBody(ctx, cancel, bounded, outbound.Bounds{
		Bytes: limits.TargetDocumentBytes, TooLong: reflector.ErrTooLarge,
		Stall: limits.TargetRequestTimeout, Stalled: fmt.Errorf("the answer stalls: fewer than %d bytes in %s", limits.StallBytes, limits.TargetRequestTimeout),
	})
	return resp, nil
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // a RoundTripper must close it even if it fails
	}
}

// untilClosed ends the context of a request when its body is closed.
type untilClosed struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements io.Closer.
func (b *untilClosed) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// holding is the memory of one session in the account of all targets. It is safe for concurrent
// use.
type holding struct {
	memory *quota.Memory
	key    quota.Key

	mu    sync.Mutex
	bytes int64
	ended bool
}

// change takes bytes, or returns some if bytes is negative. It returns false if the namespace has
// used up its share.
func (h *holding) change(bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return true
	}
	if h.memory.Hold(h.key, h.bytes+bytes) != nil {
		return false
	}
	h.bytes += bytes
	return true
}

// end returns everything.
func (h *holding) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.memory.Count(h.key, 0)
	}
	h.ended, h.bytes = true, 0
}
