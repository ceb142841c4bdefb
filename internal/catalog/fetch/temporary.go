package fetch

import (
	"fmt"
	"os"

	"lockstep.run/lockstep/internal/limits"
)

// temporary is a download on the disk, in a file without a name, which no longer exists when it is closed.
type temporary struct {
	file      *os.File
	fetcher   *Fetcher
	namespace string
	// free is how many of the bytes that are reserved on the disk are not written yet.
	free     int64
	releases []func()
}

// reservedBytes of the disk are reserved at a time, because servers do not always say how much comes.
const reservedBytes = 4 << 20

func (f *Fetcher) temporaryFile(namespace string) (*temporary, error) {
	file, err := os.CreateTemp("", "fetch-")
	if err != nil {
		return nil, fmt.Errorf("keep the download: %w", err)
	}
	_ = os.Remove(file.Name())
	return &temporary{file: file, fetcher: f, namespace: namespace}, nil
}

// Write implements io.Writer. It fails if the disk, or the share of the namespace, is full: to wait for others while it holds some of it
// could last forever.
func (t *temporary) Write(p []byte) (int, error) {
	n := int64(len(p))
	if n > t.free {
		release, ok := t.fetcher.disk.TryAcquire(t.namespace, n+reservedBytes)
		if !ok {
			return 0, &Error{
				Details: fmt.Sprintf("there is no room for it: all downloads at a time can have %d bytes, those of one namespace %d", limits.DownloadsBytes, limits.DownloadsOfNamespaceBytes),
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

// Close implements io.Closer. It may be called again.
func (t *temporary) Close() error {
	err := t.file.Close()
	for _, release := range t.releases {
		release()
	}
	return err
}
