package registry

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

func blobOf(t *testing.T, s view, content string) v1.Hash {
	t.Helper()
	h, _, err := v1.SHA256(bytes.NewReader([]byte(content)))
	require.NoError(t, err)
	f, err := s.put(h, func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	})
	require.NoError(t, err)
	if data, err := readAll(f); err != nil || string(data) != content {
		t.Fatal(data, err)
	}
	return h
}

func TestStoreEvictsWhatWasUsedLeastRecently(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all, err := newStore(dir, 10, func(err error) { t.Error(err) })
	require.NoError(t, err)
	s := all.shared()
	a, b := blobOf(t, s, "aaaa"), blobOf(t, s, "bbbb")
	old := time.Now().Add(-time.Minute)
	for _, h := range []v1.Hash{a, b} {
		require.NoError(t, os.Chtimes(s.path(h), old, old))
	}

	stale := filepath.Join(s.dir, tempPattern+"1")
	require.NoError(t, os.WriteFile(stale, nil, 0o600))
	require.NoError(t, os.Chtimes(stale, old, time.Now().Add(-2*tempAge)))
	f := s.open(a)
	if f == nil {
		t.Fatal("a is gone")
	}

	_ = f.Close()
	c := blobOf(t, s, "cccc")
	for h, want := range map[v1.Hash]bool{a: true, b: false, c: true} {
		f := s.open(h)
		if (f != nil) != want {
			t.Errorf("%s is kept: %v", h, f != nil)
		}
		if f != nil {
			_ = f.Close()
		}
	}

	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Error("what a broken download left is still there")
	}

	large := blobOf(t, s, "a blob that is larger than all")
	if f := s.open(large); f == nil {
		t.Error("the newest blob stays, however large")
	}
}

// Listing the folder takes time in proportion to its content, so it is not done for every blob.
// Another process's blobs are noticed later.
func TestStoreLooksAtTheFolderNowAndThen(t *testing.T) {
	t.Parallel()
	all, err := newStore(t.TempDir(), 100, func(err error) { t.Error(err) })
	require.NoError(t, err)
	s := all.shared()
	blobOf(t, s, "first")
	others := filepath.Join(s.dir, "sha256-others")
	require.NoError(t, os.WriteFile(others, bytes.Repeat([]byte("x"), 200), 0o600))
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(others, old, old))
	blobOf(t, s, "second")
	if _, err := os.Stat(others); err != nil {
		t.Errorf("the folder was looked at again at once: %v", err)
	}

	s.looked = s.looked.Add(-lookInterval)
	third := blobOf(t, s, "third")
	if _, err := os.Stat(others); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what another process stored beyond the limit is kept: %v", err)
	}
	if s.size != int64(len("first")+len("second")+len("third")) || s.open(third) == nil {
		t.Errorf("%d bytes are known of", s.size)
	}
}

// A stored layer is not read into memory as a manifest.
func TestStoredManifestIsBounded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		size    int64
		refused bool
	}{{limits.ImageManifestBytes, false}, {limits.ImageManifestBytes + 1, true}} {
		f, err := os.Create(filepath.Join(t.TempDir(), "blob"))
		require.NoError(t, err)
		require.NoError(t, f.Truncate(test.size))
		data, err := readAll(f)
		var e *failure
		if errors.As(err, &e); (e != nil && e.reason == ReasonLimit) != test.refused || !test.refused && int64(len(data)) != test.size {
			t.Errorf("%d bytes: read %d with %v", test.size, len(data), err)
		}
	}
}
