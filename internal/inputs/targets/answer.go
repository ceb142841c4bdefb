package targets

import (
	"fmt"
	"io"
	"sync"
	"time"

	"lockstep.run/lockstep/internal/cluster/reflector"
)

const (
	targetFreeLine   = 64 << 10         // of a line of a watch that is not counted as memory: as large as many objects
	targetDecodeTime = 10 * time.Second // of one large answer: the others wait
	targetDecodeRate = 16 << 20         // bytes of JSON that are decoded in a second, at least
)

// answer bounds a body of JSON before it is decoded: its bytes, and its values, which take many times their text.
type answer struct {
	io.ReadCloser
	// what names the answer, or the line, in messages.
	what string
	// lines means that the limits are those of each line: an event of a watch.
	lines bool
	// bytes and values are the limits.
	bytes, values int
	// asked means that a smaller page may be asked for.
	asked bool
	// hold counts the memory of a line beyond held bytes, which a decoder keeps until the end of the watch; it may be nil.
	mu       sync.Mutex // it may be closed while it is read
	hold     func(bytes int64)
	held     int
	exceeded func(error) error

	// admission is that of a large answer.
	admission *admission

	seen    scan
	failure error
}

// errSlow is why a large answer is not read to its end.
var errSlow = fmt.Errorf("a large answer of the target takes longer than %s", targetDecodeTime)

// scan is how far a text of JSON was read.
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
		a.admission.finish() // the lines so far were decoded
	}
	n, err := a.ReadCloser.Read(p)
	if a.seen.bytes+n > targetFreeLine {
		if err := a.admission.begin(); err != nil {
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
			a.hold(int64(a.held)) // it doubles its buffer
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
	return a.exceeded(fmt.Errorf("%s has more than %d %s, which is more than any of an API server has: check where cluster.server of the kubeconfig leads to (%w)",
		a.what, limit, of, reflector.ErrTooLarge))
}

// next reads a byte. Values are counted by what starts or separates them.
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
