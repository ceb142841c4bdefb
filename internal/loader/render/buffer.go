package render

import "bytes"

// buffer holds the output of a template up to a limit.
type buffer struct {
	bytes.Buffer
	limit int
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.limit {
		return 0, limitf("the output has more than %d bytes", b.limit)
	}
	return b.Buffer.Write(p)
}
