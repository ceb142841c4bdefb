package apply

import (
	"fmt"
	"io"

	"lockstep.run/lockstep/internal/limits"
)

// ErrResponseTooLarge means that an API server's response exceeds limits.ResponseBytes; its class
// is Blocked.
var ErrResponseTooLarge = fmt.Errorf("the API server's response is larger than %d MiB, the most that is read of one object", limits.ResponseBytes>>20)

// boundedBody fails a read beyond its remaining bytes.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read reads, or fails if the response is too large.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, ErrResponseTooLarge
	}
	return n, err
}
