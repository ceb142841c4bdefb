package reflector

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"

	"lockstep.run/lockstep/internal/limits"
)

// framer reads the frames of a watch, which are JSON objects. Apimachinery's framer also validates
// them, which takes longer than to decode them, and keeps a frame of any size in memory.
type framer struct{ runtime.Framer }

// NewFrameReader implements runtime.Framer.
func (framer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &frames{Closer: r, in: bufio.NewReaderSize(r, 32<<10)}
}

// frames are the JSON objects of a stream. Only braces and strings determine where an object ends;
// its decoder has to validate it.
type frames struct {
	io.Closer
	in *bufio.Reader
	// depth counts the open braces and brackets of the present frame, 0 between frames.
	depth           int
	quoted, escaped bool
}

// Read reads the next part of a frame, and returns io.ErrShortBuffer unless it is the last one.
func (f *frames) Read(data []byte) (n int, err error) {
	for n < len(data) {
		if _, err := f.in.Peek(1); err != nil {
			if errors.Is(err, io.EOF) && f.depth > 0 {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		chunk, _ := f.in.Peek(min(f.in.Buffered(), len(data)-n))
		start, end, err := f.scan(chunk)
		if err != nil {
			return 0, err
		}
		n += copy(data[n:], chunk[start:end])
		_, _ = f.in.Discard(end)
		if n > 0 && f.depth == 0 {
			return n, nil
		}
	}

	return n, io.ErrShortBuffer
}

// scan returns the part of a chunk that belongs to the present frame, or between frames to the next
// one.
func (f *frames) scan(chunk []byte) (start, end int, err error) {
	if f.depth == 0 {
		for start < len(chunk) && (chunk[start] == '\n' || chunk[start] == ' ' || chunk[start] == '\r' || chunk[start] == '\t') {
			start++
		}
		if start < len(chunk) && chunk[start] != '{' {
			return 0, 0, fmt.Errorf("an event of a watch starts with %q, and is not a JSON object", chunk[start])
		}
	}

	for i := start; i < len(chunk); i++ {
		c := chunk[i]
		switch {
		case f.escaped:
			f.escaped = false
		case c == '"':
			f.quoted = !f.quoted
		case f.quoted:
			f.escaped = c == '\\'
		case c == '{' || c == '[':
			if f.depth++; f.depth > limits.EventNesting {
				return 0, 0, fmt.Errorf("an event of a watch is nested deeper than %d levels", limits.EventNesting)
			}
		case c == '}' || c == ']':
			if f.depth--; f.depth == 0 {
				return start, i + 1, nil
			}
		}
	}

	return start, len(chunk), nil
}
