package reflector

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"lockstep.run/lockstep/test/require"
)

// readFrames reads a stream with a buffer of a size.
func readFrames(r io.Reader, size int) (all []string, err error) {
	in, data := framer{}.NewFrameReader(io.NopCloser(r)), make([]byte, size)
	frame := ""
	for {
		n, err := in.Read(data)
		frame += string(data[:n])
		switch {
		case err == nil:
			all, frame = append(all, frame), ""
		case !errors.Is(err, io.ErrShortBuffer):
			return all, err
		}
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	const odd = `{"a":"}\"{\\","b":[{"c":"]"},"\\\\"]}`
	for name, tc := range map[string]struct {
		stream string
		want   []string
		err    error
	}{
		"lines":               {"{}\n" + odd + "\n", []string{"{}", odd}, io.EOF},
		"no event in between": {odd + odd + "{}", []string{odd, odd, "{}"}, io.EOF},
		"white space":         {" \r\n\t{ \"a\" :\n1 }\n \n", []string{"{ \"a\" :\n1 }"}, io.EOF},
		"nothing":             {"", nil, io.EOF},
		"an end in a frame":   {`{}{"a":"}`, []string{"{}"}, io.ErrUnexpectedEOF},
		"a frame that is big": {`{"a":"` + strings.Repeat("{", 100<<10) + `"}{}`, []string{`{"a":"` + strings.Repeat("{", 100<<10) + `"}`, "{}"}, io.EOF},
	} {
		for _, size := range []int{1, 3, 64 << 10} {
			for _, r := range []io.Reader{strings.NewReader(tc.stream), iotest.OneByteReader(strings.NewReader(tc.stream))} {
				got, err := readFrames(r, size)
				require.Equal(t, tc.want, got, name)
				if !errors.Is(err, tc.err) {
					t.Errorf("%s: the stream ends with %v, want %v", name, err, tc.err)
				}
			}
		}
	}
	if got, err := readFrames(strings.NewReader(`{}<html>{}`), 100); err == nil || errors.Is(err, io.EOF) || len(got) != 1 {
		t.Errorf("no JSON: %q, %v", got, err)
	}
}

// FuzzFrames: a stream of JSON objects has the frames that encoding/json finds.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{"{}", `{"a":"\""}[]`, " {\"a\":[1,{}]}\n{\"\\\\\":\"}\"}", `{"a`, "{]}"} {
		f.Add(seed, 7)
	}
	f.Fuzz(func(t *testing.T, stream string, size int) {
		got, err := readFrames(strings.NewReader(stream), max(size%100, 1))
		decoder := json.NewDecoder(strings.NewReader(stream))
		for i := 0; ; i++ {
			var want json.RawMessage
			decodeErr := decoder.Decode(&want)
			switch {
			case decodeErr == nil && strings.HasPrefix(string(want), "{"):
				if i >= len(got) || got[i] != string(want) {
					t.Fatalf("frame %d of %q is %q, want %q (%v)", i, stream, got, want, err)
				}
				continue
			case errors.Is(decodeErr, io.EOF) && (i != len(got) || !errors.Is(err, io.EOF)):
				t.Fatalf("%q has the frames %q, and ends with %v", stream, got, err)
			}
			return
		}
	})
}
