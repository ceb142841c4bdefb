package reflector

import (
	"context"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/limits"
)

// BoundPages bounds the pages of lists that clients of a config read, because the labels,
// annotations and managedFields of 500 objects can have some hundred MiB. A larger page fails with
// ErrTooLarge, and only a few large ones are read at a time.
func BoundPages(config *rest.Config) {
	places := make(chan struct{}, limits.LargePages)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &pageReader{next, places} })
}

type pageReader struct {
	next   http.RoundTripper
	places chan struct{}
}

// WrappedRoundTripper lets client-go find the transport below.
func (r *pageReader) WrappedRoundTripper() http.RoundTripper { return r.next }

// RoundTrip sends a request.
func (r *pageReader) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := r.next.RoundTrip(req)
	if err != nil || req.Method != http.MethodGet {
		return res, err
	}
	if limit := req.URL.Query().Get("limit"); limit != "" && limit != "1" && res.StatusCode == http.StatusOK {
		res.Body = &page{ReadCloser: res.Body, ctx: req.Context(), places: r.places}
	}
	return res, nil
}

// page is the body of a page. Close can be called during a Read.
type page struct {
	io.ReadCloser
	ctx    context.Context
	places chan struct{}
	bytes  int

	mu           sync.Mutex
	held, closed bool // a place, and the body
}

// Read implements io.Reader.
func (p *page) Read(b []byte) (int, error) {
	if p.bytes > limits.LargePageBytes {
		if err := p.hold(); err != nil {
			return 0, err
		}
	}

	n, err := p.ReadCloser.Read(b[:min(len(b), limits.ResponseBytes+1-p.bytes)])
	if p.bytes += n; p.bytes > limits.ResponseBytes {
		return 0, ErrTooLarge
	}
	return n, err
}

func (p *page) hold() error {
	p.mu.Lock()
	has := p.held || p.closed
	p.mu.Unlock()
	if has {
		return nil
	}

	select {
	case p.places <- struct{}{}:
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held = !p.closed; p.closed {
		<-p.places
	}

	return nil
}

// Close implements io.Closer.
func (p *page) Close() error {
	err := p.ReadCloser.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		<-p.places
	}
	p.held, p.closed = false, true
	return err
}
