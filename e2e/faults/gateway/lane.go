package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// lane connects one manager process to one cluster. The lane to another cluster serves one
// process after the other.
type lane struct {
	*Crew
	upstream
	server  *httptest.Server
	proxy   *httputil.ReverseProxy
	manager *process
	started chan struct{}

	mu   sync.Mutex
	dead bool
	// away is the time until which no request passes.
	away time.Time
	// next is the fault of the next list or watch, by resource.
	next    map[string]Decision
	flights sync.WaitGroup
}

func newLane(up upstream) *lane {
	l := &lane{upstream: up, next: map[string]Decision{}}
	l.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(up.target)
			r.Out.Host = up.target.Host
		},
		Transport: up.to, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	l.server = httptest.NewUnstartedServer(l)
	l.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	l.server.EnableHTTP2 = true
	l.server.StartTLS() // client-go sends no token in the clear
	return l
}

// reset prepares the lane for the next manager.
func (l *lane) reset(c *Crew) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Crew, l.started, l.dead, l.away, l.next = c, make(chan struct{}), false, time.Time{}, map[string]Decision{}
}

// drain waits until all requests of a dead manager have ended, including late ones.
func (l *lane) drain() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.server.CloseClientConnections()
	l.flights.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, d := range l.next {
		delete(l.next, key)
		d.met()
	}
}

// leave lets nothing through for a while, and cuts requests that are underway.
func (l *lane) leave(d time.Duration) {
	l.mu.Lock()
	l.away = time.Now().Add(d)
	l.mu.Unlock()
	go l.server.CloseClientConnections()
}

// ServeHTTP injects the director's fault into a request.
func (l *lane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !l.takeOff() {
		panic(http.ErrAbortHandler)
	}
	defer l.flights.Done()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the manager ended while sending: an incomplete request is dropped
	}
	q := parse(r, body)
	q.Other = l.upstream.other
	if q.Watch || q.List {
		if l.refused(w, q) {
			return
		}
	}
	if q.Watch {
		if !q.Initial || !l.refusedBy(w, q) {
			l.watch(w, r, q)
		}
		return
	}
	if version := l.outdated(q); version != "" {
		r.URL.RawQuery = asOf(r.URL.Query(), version).Encode()
	}
	q.id = string(uuid.NewUUID())
	f := &flight{lane: l, w: w, r: r, q: q}
	l.carry(f, l.director.Request(q))
}

// refusedBy refuses a streamed list if the director decides so.
func (l *lane) refusedBy(w http.ResponseWriter, q *Request) bool {
	d := l.director.Request(q)
	defer l.director.Ended(q)
	switch d.Fault {
	case Drop:
		panic(http.ErrAbortHandler)
	case TooMany, Internal, Unavailable:
		refuse(w, codes[d.Fault])
		return true
	}
	return false
}

func (l *lane) takeOff() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead || time.Now().Before(l.away) {
		return false
	}
	l.flights.Add(1)
	return true
}

// carry completes a request. Faults that cut the stream panic, which only resets the stream.
func (l *lane) carry(f *flight, d Decision) {
	later := false
	defer func() {
		if !later {
			l.director.Ended(f.q)
		}
	}()
	switch d.Fault {
	case Drop:
		f.abort()
	case Late:
		later = true
		f.passLater(d.For)
		f.abort()
	case Conflict, TooMany, Internal, Unavailable:
		refuse(f.w, codes[d.Fault])
		return
	case Delay:
		time.Sleep(d.For)
	case Cut:
		go l.server.CloseClientConnections()
		f.abort()
	case Away:
		l.leave(d.For)
		f.abort()
	case KillBefore:
		l.kill()
	case Stop:
		<-l.started
		l.manager.Signal(syscall.SIGSTOP)
		time.AfterFunc(d.For, func() { l.manager.Signal(syscall.SIGCONT) })
	}
	answer := f.pass()
	switch d.Fault {
	case Lose:
		f.abort()
	case DelayAnswer:
		time.Sleep(d.For)
	case RepeatFirst:
		f.pass()
	case RepeatSecond:
		answer = f.pass()
	case RepeatLate:
		later = true
		f.passLater(d.For)
	case ConflictAfter, InternalAfter:
		refuse(f.w, codes[d.Fault])
		return
	case KillAfter:
		l.kill()
	}
	for key, values := range answer.Header() {
		f.w.Header()[key] = values
	}
	f.w.WriteHeader(answer.Code)
	_, _ = f.w.Write(answer.Body.Bytes())
}

// kill ends the manager and leaves the request without an answer.
func (l *lane) kill() {
	<-l.started
	l.mu.Lock()
	first := !l.dead
	l.dead = true
	l.mu.Unlock()
	if first {
		l.ends(l.manager)
		l.manager.Kill()
	}
	panic(http.ErrAbortHandler)
}

// flight is a request on its way.
type flight struct {
	*lane
	w http.ResponseWriter
	r *http.Request
	q *Request
}

// abort resets the stream.
func (f *flight) abort() { panic(http.ErrAbortHandler) }

// pass sends the request to the API server and returns the answer, even if the client has
// disconnected.
func (f *flight) pass() *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	out := f.r.Clone(context.WithoutCancel(f.r.Context()))
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(f.q.Body)), int64(len(f.q.Body))
	out.Header.Set("Audit-ID", f.q.id)
	f.proxy.ServeHTTP(answer, out)
	f.director.Answered(f.q, answer.Code)
	return answer
}

// passLater passes the request on after a while, and ends it then.
func (f *flight) passLater(after time.Duration) {
	f.flights.Add(1)
	go func() {
		defer f.flights.Done()
		defer f.director.Ended(f.q)
		time.Sleep(after)
		f.pass()
	}()
}

var codes = map[Fault]int{
	Conflict: http.StatusConflict, TooMany: http.StatusTooManyRequests, Internal: http.StatusInternalServerError, Unavailable: http.StatusServiceUnavailable,
	ConflictAfter: http.StatusConflict, InternalAfter: http.StatusInternalServerError,
	GoneAtStart:  http.StatusGone,
	WatchTooMany: http.StatusTooManyRequests, WatchInternal: http.StatusInternalServerError, WatchUnavailable: http.StatusServiceUnavailable,
	ListTooMany: http.StatusTooManyRequests, ListInternal: http.StatusInternalServerError, ListUnavailable: http.StatusServiceUnavailable,
}

var reasons = map[int]metav1.StatusReason{
	http.StatusConflict: metav1.StatusReasonConflict, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	http.StatusGone: metav1.StatusReasonExpired,
}

// refuse answers as an API server would.
func refuse(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	_, _ = w.Write(status(code))
}

func status(code int) []byte {
	s := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reasons[code], Message: "an injected fault", //nolint:gosec // a status of HTTP
	}
	if code == http.StatusTooManyRequests {
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // all values are our own
	}
	return raw
}
