package fetch

import (
	"testing"

	"lockstep.run/lockstep/internal/limits"
)

// Downloads take no more of the disk than there is for all of them, and give it back.
func TestDownloadsShareTheDisk(t *testing.T) {
	t.Parallel()
	f := local()
	f.onDisk.Store(limits.DownloadsBytes - 10)
	url := serveBytes(t, []byte("kind: a-long-name\n"))
	_, err := f.Fetch(t.Context(), webSource(url), "")
	checkError(t, err, false, "there is no room for it: all downloads at a time may have 805306368 bytes. It is repeated later.")
	f.onDisk.Add(-10)
	fetched(t, f, webSource(url), "")
	if got := f.onDisk.Load(); got != limits.DownloadsBytes-20 {
		t.Errorf("%d bytes are left", got)
	}
	f.onDisk.Store(0)
	g := newGit(t)
	g.Commit(map[string]string{"a.yaml": "a"})
	fetched(t, f, g.source("main"), "")
	if got := f.onDisk.Load(); got != 0 {
		t.Errorf("%d bytes are left after a git repository", got)
	}
}
