package targets

import (
	"fmt"
	"io"
	"sync"
	"time"

	"lockstep.run/lockstep/internal/cluster/reflector"
)

const (
	targetFreeLine   = 64 << 10         // bytes of a watch's line that do not count as memory; many objects fit
	targetDecodeTime = 10 * time.Second // of one large answer, while the others wait
	targetDecodeRate = 16 << 20         // minimum of bytes of JSON that are decoded per second
)

// answer bounds a body of JSON before it is decoded. It bounds the bytes as well as the values,
// which take many times the memory of their text.
type answer struct {
	io.ReadCloser
	// what names the answer or the line in messages.
	what string
	// lines means that the limits apply to each line, which is an event of a watch.
	lines bool
	// bytes and values are the limits.
	bytes, values int
	// asked means that the caller can request a smaller page.
	asked bool
	// hold counts the memory of a line beyond held bytes, because a decoder keeps its buffer until
	// the end of the watch. It can be nil.
	mu       sync.Mutex // it can be closed while it is read
	hold     func(bytes int64)
	held     int
	exceeded func(error) error

	// admission is the admission of a large answer.
	admission *admission

	seen    scan
	failure error
}

// errSlow ends the read of a large answer.
var errSlow = fmt.Errorf("a large answer of the target takes longer than %s", targetDecodeTime)

// scan is the progress through a text of JSON.
type scan struct {
	bytes, values   int
	quoted, escaped bool
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	if a.failure != nil {
		return 0, a.failure
	}
	if a.lines && a.seen.bytes <= targetFreeLine {
		a.admission.finish() // the lines so far are decoded
	}

	n, err := a.ReadCloser.Read(p)
	if a.seen.bytes+n > targetFreeLine {
		if err := a.admission.start(); err != nil {
			return 0, err
		}
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range p[:n] {
		a.seen.next(c, a.lines)
		if a.seen.bytes > a.bytes || a.seen.values > a.values {
			a.failure = a.tooLarge()
			return 0, a.failure
		}
		if a.hold != nil && a.seen.bytes > a.held {
			a.hold(int64(a.held)) // the decoder doubles its buffer
			a.held *= 2
		}
	}

	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.admission.close(time.Duration(a.seen.bytes) * time.Second / targetDecodeRate)
	if a.hold != nil {
		a.hold(int64(targetFreeLine - a.held))
		a.hold = nil
	}
	return a.ReadCloser.Close()
}

func (a *answer) tooLarge() error {
	if a.asked {
		return reflector.ErrTooLarge
	}
	limit, of := a.bytes, "bytes"
	if a.seen.values > a.values {
		limit, of = a.values, "values"
	}
	return a.exceeded(fmt.Errorf("%s has more than %d %s, which is more than an API server ever sends: check where cluster.server of the kubeconfig leads to (%w)",
		a.what, limit, of, reflector.ErrTooLarge))
}

// next reads a byte. It counts values by the characters that start or separate them.
func (s *scan) next(c byte, lines bool) {
	s.bytes++
	switch {
	case s.escaped:
		s.escaped = false
	case s.quoted:
		s.escaped, s.quoted = c == '\\', c != '"'
	case c == '"':
		s.quoted = true
	case c == '{', c == '[', c == ',':
		s.values++
	case c == '\n' && lines:
		*s = scan{}
	}
}
