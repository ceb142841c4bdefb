package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"lockstep.run/lockstep/internal/ui/page"
	"lockstep.run/lockstep/internal/ui/watches"
)

// refresh is the interval at which a stream draws the page again, because ages change by the
// minute.
const refresh = 30 * time.Second

// stream sends changed fragments until the browser or the command ends.
func (s *server) stream(w http.ResponseWriter, r *http.Request, open func(*http.Request) (view, error)) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, fmt.Sprintf("There are already %d streams: close other tabs of this page.", pageStreams), http.StatusServiceUnavailable)
		return
	}

	out := &events{w: w, control: http.NewResponseController(w)}
	_ = out.control.SetReadDeadline(time.Time{}) // the request was read; a pending read notices its end
	v, err := open(r)
	if err != nil || v.subscribe == nil {
		_ = out.send("gone", []byte("{}"))
		return
	}

	s.follow(r.Context(), out, v, digests(r))
}

// follow sends the changes of a page until its object no longer exists or the browser ends the
// stream.
func (s *server) follow(ctx context.Context, out *events, v view, known map[string]string) {
	changed, end := v.subscribe()
	defer end()
	tick := time.NewTicker(refresh)
	defer tick.Stop()

	for err := out.start(); err == nil; {
		begin := time.Now()
		p := v.draw(s.frame())
		if p == nil {
			_ = out.send("gone", []byte("{}"))
			return
		}
		if err = out.changes(p, known); err != nil {
			return
		}

		// A page that takes long to draw is drawn less often, so that a stream never uses a whole
		// processor.
		pause := time.NewTimer(max(watches.Interval, 4*time.Since(begin)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}

		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// digests of the fragments that the browser has, as have=ID:DIGEST.
func digests(r *http.Request) map[string]string {
	known := map[string]string{}
	for _, part := range r.URL.Query()["have"] {
		if id, digest, ok := strings.Cut(part, ":"); ok {
			known[id] = digest
		}
	}
	return known
}

// events writes server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	started bool
}

// start sends the headers once, before the first event.
func (e *events) start() error {
	if e.started {
		return nil
	}
	e.started = true
	e.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	e.w.WriteHeader(http.StatusOK)
	return e.control.Flush()
}

// changes sends the fragments that are not known, or a comment that keeps the connection alive.
func (e *events) changes(p *page.Page, known map[string]string) error {
	fragments, err := p.Changed(known)
	if err != nil {
		return err
	}

	for _, f := range fragments {
		text, err := json.Marshal(f)
		if err != nil {
			return err
		}
		if err := e.send("fragment", text); err != nil {
			return err
		}
		known[f.ID] = f.Digest
	}

	if len(fragments) > 0 {
		return nil
	}
	return e.write([]byte(": nothing new\n\n"))
}

// send sends one event.
func (e *events) send(name string, data []byte) error {
	if err := e.start(); err != nil {
		return err
	}
	return e.write(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data))
}

// write sends a text at once. Each one has a new deadline, because a stream has no end.
func (e *events) write(text []byte) error {
	if err := e.control.SetWriteDeadline(time.Now().Add(pageWriteTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.control.Flush()
}
