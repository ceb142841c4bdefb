package fetch

import (
	"fmt"
	"os"

	"lockstep.run/lockstep/internal/limits"
)

// temporary is a download on the disk, in a file without a name, which is gone when it is closed.
type temporary struct {
	file    *os.File
	fetcher *Fetcher
	bytes   int64
}

func (f *Fetcher) temporaryFile() (*temporary, error) {
	file, err := os.CreateTemp("", "fetch-")
	if err != nil {
		return nil, fmt.Errorf("keep the download: %w", err)
	}
	_ = os.Remove(file.Name())
	return &temporary{file: file, fetcher: f}, nil
}

// Write implements io.Writer. It fails where all downloads together would have too many bytes: the disk is shared.
func (t *temporary) Write(p []byte) (int, error) {
	n := int64(len(p))
	if t.fetcher.onDisk.Add(n) > limits.DownloadsBytes {
		t.fetcher.onDisk.Add(-n)
		return 0, &Error{Details: fmt.Sprintf("there is no room for it: all downloads at a time may have %d bytes", limits.DownloadsBytes), Remedy: "It is repeated later."}
	}
	t.bytes += n
	return t.file.Write(p)
}

// ReadAt implements io.ReaderAt.
func (t *temporary) ReadAt(p []byte, offset int64) (int, error) { return t.file.ReadAt(p, offset) }

// Close implements io.Closer. It may be called again.
func (t *temporary) Close() error {
	t.fetcher.onDisk.Add(-t.bytes)
	t.bytes = 0
	return t.file.Close()
}
