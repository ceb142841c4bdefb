package ui

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/ui/page"
)

// pageReadTimeout is the time for reading a request.
const pageReadTimeout = 10 * time.Second // of a request

// view is the content of a page, and the signal that it changed. Its resources end with the
// request.
type view struct {
	draw func(page.Frame) *page.Page
	// subscribe is nil for a page that does not change.
	subscribe func() (<-chan struct{}, func())
}

// notFound is the error for a page that does not exist.
type notFound string

// Error implements error.
func (e notFound) Error() string { return string(e) }

// routes returns the pages inside the guard. Each page has a stream of its changes below it.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.guard.Base()+"packages", http.StatusSeeOther)
	})

	for path, make := range map[string]func(*http.Request) (view, error){
		"/packages": s.list, "/packages/{namespace}/{name}": s.one, "/clusterpackages/{name}": s.one,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, make) })
		mux.HandleFunc("GET "+path+"/stream", func(w http.ResponseWriter, r *http.Request) { s.stream(w, r, make) })
	}

	for _, path := range []string{"/packages/{namespace}/{name}", "/clusterpackages/{name}"} {
		mux.HandleFunc("GET "+path+"/diff", func(w http.ResponseWriter, r *http.Request) { s.show(w, r, s.diff) })
	}

	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, notFound("There is no page at this address."))
	})
	return mux
}

// frame returns the current frame of a page.
func (s *server) frame() page.Frame {
	return page.Frame{Base: s.guard.Base(), Cluster: s.cluster.Host, Notes: slices.Concat(s.notes, s.board.Notes()), Now: time.Now()}
}

// show answers with a document.
func (s *server) show(w http.ResponseWriter, r *http.Request, open func(*http.Request) (view, error)) {
	// The request was read, and its deadline would end a longer answer.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	ctx, cancel := context.WithTimeout(r.Context(), pageReadTimeout)
	defer cancel()
	s.board.Synced(ctx)
	v, err := open(r.WithContext(ctx))
	if err != nil {
		s.fail(w, err)
		return
	}
	write(w, http.StatusOK, v.draw(s.frame()))
}

// fail answers with a page for an error.
func (s *server) fail(w http.ResponseWriter, err error) {
	status, title := http.StatusBadGateway, "This cannot be shown"
	if missing := notFound(""); errors.As(err, &missing) {
		status, title = http.StatusNotFound, "Not found"
	}
	write(w, status, page.Failed(s.frame(), title, err.Error()))
}

// write writes a document, as a whole or not at all.
func write(w http.ResponseWriter, status int, p *page.Page) {
	if p == nil { // its subject was deleted while it was drawn
		http.Error(w, "The object of this page no longer exists.", http.StatusNotFound)
		return
	}
	// The document is complete before the first byte is sent, so that an error can still set the
	// status.
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		http.Error(w, "The page cannot be drawn.", http.StatusInternalServerError)
		return
	}

	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // only the connection can fail
}

// targetOf returns the package in the path of a request.
func targetOf(r *http.Request) progress.Target {
	return progress.TargetFor(r.PathValue("namespace"), r.PathValue("name"))
}
