package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// watch carries a watch, event by event.
func (l *lane) watch(w http.ResponseWriter, r *http.Request, q *Request) {
	query := r.URL.Query()
	stale := l.outdated(q)
	if stale != "" {
		query.Del("sendInitialEvents")
		query.Del("resourceVersionMatch")
		query.Set("resourceVersion", stale)
	}
	answer, err := l.open(r, query)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	for key, values := range answer.Header {
		w.Header()[key] = values
	}
	w.Header().Del("Content-Length") // the body sent can be longer or shorter
	w.WriteHeader(answer.StatusCode)
	if stale != "" && answer.StatusCode == http.StatusOK {
		l.replay(w, r, stale)
	}
	if answer.StatusCode != http.StatusOK || !strings.Contains(answer.Header.Get("Content-Type"), "json") {
		_, _ = io.Copy(flushing{w}, answer.Body)
		return
	}
	l.pump(w, q, answer.Body)
}

// open sends a read to the API server, with another query.
func (l *lane) open(r *http.Request, query url.Values) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.RequestURI, out.Host, out.Body = "", l.target.Host, http.NoBody
	out.URL.Scheme, out.URL.Host, out.URL.RawQuery = l.target.Scheme, l.target.Host, query.Encode()
	out.Header.Set("Accept", textOnly(out.Header.Get("Accept")))
	out.Header.Del("Accept-Encoding")
	return l.to.RoundTrip(out)
}

// textOnly removes protobuf from the media types that a client accepts.
func textOnly(accept string) string {
	var kept []string
	for media := range strings.SplitSeq(accept, ",") {
		if !strings.Contains(media, "protobuf") {
			kept = append(kept, media)
		}
	}
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}

// pump delivers events until the watch ends or a fault ends it.
func (l *lane) pump(w http.ResponseWriter, q *Request, body io.Reader) {
	out := flushing{w}
	_, _ = out.Write(nil)
	for lines := bufio.NewReaderSize(body, 1<<16); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		e := &Event{Watch: q}
		if json.Unmarshal(line, e) != nil {
			return // the API server only sends valid JSON
		}
		switch d := l.director.Event(e); d.Fault {
		case None:
		case Hold:
			time.Sleep(d.For)
		case Half:
			_, _ = out.Write(line[:len(line)/2])
			panic(http.ErrAbortHandler)
		case Gone, ListDrop, ListTooMany, ListInternal, ListUnavailable, ListStale:
			l.expect(q, d)
			_, _ = fmt.Fprintf(out, `{"type":"ERROR","object":%s}`+"\n", status(http.StatusGone))
			return
		default:
			l.expect(q, d)
			return
		}
		if _, err := out.Write(line); err != nil {
			return
		}
	}
}

// expect sets the fault of the next list or watch of a resource.
func (l *lane) expect(q *Request, d Decision) {
	if d.Fault == Gone || d.Fault == Break {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := q.Group + "/" + q.Resource
	l.next[key].met()
	l.next[key] = d
}

// due returns the fault of a list or watch and removes it, if the function accepts it.
func (l *lane) due(q *Request, of func(Decision) bool) Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := q.Group + "/" + q.Resource
	d, ok := l.next[key]
	if !ok || !of(d) {
		return Decision{}
	}
	delete(l.next, key)
	d.met()
	return d
}

// refused refuses a list or the start of a watch if such a fault is due.
func (l *lane) refused(w http.ResponseWriter, q *Request) bool {
	d := l.due(q, func(d Decision) bool {
		switch d.Fault {
		case GoneAtStart, WatchDrop, WatchTooMany, WatchInternal, WatchUnavailable:
			return q.Watch && !q.Initial
		case ListDrop, ListTooMany, ListInternal, ListUnavailable:
			return q.List || q.Initial
		}
		return false
	})
	switch d.Fault {
	case None:
		return false
	case WatchDrop, ListDrop:
		panic(http.ErrAbortHandler)
	}
	refuse(w, codes[d.Fault])
	return true
}

// flushing sends each write at once.
type flushing struct{ http.ResponseWriter }

// Write writes and flushes.
func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if flusher, ok := f.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
	return n, err
}
