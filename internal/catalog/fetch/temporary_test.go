package fetch

import (
	"testing"

	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/test/require"
)

// All downloads together stay within the limit of the disk, those in a namespace within its share,
// and all of it is released.
func TestDownloadsShareTheDisk(t *testing.T) {
	t.Parallel()
	f := local()
	f.disk = queueing.NewSemaphore(5*reservedBytes, 2*reservedBytes)
	source := webSource(serveBytes(t, []byte("kind: a-long-name\n")))
	source.Namespace = "team"
	slow, err := f.temporaryFile("team")
	require.NoError(t, err)
	_, err = slow.Write([]byte("x"))
	require.NoError(t, err)
	_, err = f.Fetch(t.Context(), source, "")
	checkError(t, err, false, "there is no room for it: all downloads together can have 1006632960 bytes, and one namespace's 536870912. It is repeated later.")
	source.Namespace = "other"
	fetched(t, f, source, "")
	require.NoError(t, slow.Close())
	_ = slow.Close()
	g := newGit(t)
	g.Commit(map[string]string{"a.yaml": "a"})
	fetched(t, f, g.source("main"), "")
	if used, _ := f.disk.Depth(); used != 0 {
		t.Errorf("%d bytes stay reserved", used)
	}
}
