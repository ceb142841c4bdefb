package fetch

import (
	"fmt"
	"os"

	"lockstep.run/lockstep/internal/limits"
)

// temporary is a download on disk, in an unnamed file that disappears when it is closed.
type temporary struct {
	file      *os.File // not embedded: io.Copy would write to it without the account
	fetcher   *Fetcher
	namespace string
	// free is the number of reserved bytes on disk that are not written yet.
	free     int64
	releases []func()
}

// reservedBytes are reserved on disk at a time, because servers do not always announce the size.
const reservedBytes = 4 << 20

// temporaryFile creates a file without a name, which the system frees even if the process is
// killed.
func (f *Fetcher) temporaryFile(namespace string) (*temporary, error) {
	file, err := os.CreateTemp("", "fetch-")
	if err != nil {
		return nil, fmt.Errorf("keep the download: %w", err)
	}
	_ = os.Remove(file.Name())
	return &temporary{file: file, fetcher: f, namespace: namespace}, nil
}

// Write implements io.Writer. It fails if the disk, or the share of the namespace, is full. Waiting
// for other downloads while holding space could last forever.
func (t *temporary) Write(p []byte) (int, error) {
	n := int64(len(p))
	if n > t.free {
		release, ok := t.fetcher.disk.TryAcquire(t.namespace, n+reservedBytes)
		if !ok {
			return 0, &Error{
				Details: fmt.Sprintf("it does not fit: all downloads together can have %d bytes, and one namespace's %d", limits.DownloadsBytes, limits.DownloadsOfNamespaceBytes),
				Remedy:  "It is repeated later.",
			}
		}
		t.free += n + reservedBytes
		t.releases = append(t.releases, release)
	}

	t.free -= n
	return t.file.Write(p)
}

// ReadAt implements io.ReaderAt.
func (t *temporary) ReadAt(p []byte, offset int64) (int, error) { return t.file.ReadAt(p, offset) }

// Close implements io.Closer. It can be called again.
func (t *temporary) Close() error {
	err := t.file.Close()
	for _, release := range t.releases {
		release()
	}
	return err
}
