package registry

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// store keeps blobs (manifests and layers) on disk by their digest. A blob is
// written to a temporary file, and gets its name when it is complete; several
// processes may share a folder. Without a folder, blobs live as long as they
// are open.
type store struct {
	dir     string
	limit   int64
	onError func(error)

	mu sync.Mutex
	// size is what the folder held when it was last looked at, and what was stored
	// since.
	size   int64
	looked time.Time
}

const (
	blobFolder  = "blobs"
	tempPattern = "incoming-"
	// tempAge is after how long a temporary file was left by a process that is
	// gone.
	tempAge = time.Hour
	// lookInterval is how often the whole folder is looked at while what is known
	// fits: a look costs in proportion to all that is kept. Other processes may
	// store beyond the limit for that long.
	lookInterval = time.Minute
)

func newStore(dir string, limit int64, onError func(error)) (*store, error) {
	s := &store{limit: limit, onError: onError}
	if dir == "" {
		return s, nil
	}
	s.dir = filepath.Join(dir, blobFolder)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the image cache: %w", err)
	}
	return s, nil
}

func (s *store) path(h v1.Hash) string { return filepath.Join(s.dir, h.Algorithm+"-"+h.Hex) }

// open returns a blob that is there and is what its digest says, else nil. A
// damaged one is removed.
func (s *store) open(h v1.Hash) *os.File {
	if s.dir == "" {
		return nil
	}
	f, err := os.Open(s.path(h))
	if err != nil {
		return nil
	}
	if err := verify(f, h); err != nil {
		_ = f.Close()
		s.forget(h)
		s.onError(fmt.Errorf("the image cache was damaged: %w", err))
		return nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		_ = f.Close()
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(s.path(h), now, now)
	return f
}

func (s *store) forget(h v1.Hash) { _ = os.Remove(s.path(h)) }

// put stores what download writes, and returns it for reading. download checks
// the content.
func (s *store) put(h v1.Hash, download func(io.Writer) error) (*os.File, error) {
	f, err := os.CreateTemp(s.dir, tempPattern)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*os.File, error) {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return nil, err
	}
	if err := download(f); err != nil {
		return fail(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fail(err)
	}
	if s.dir == "" {
		_ = os.Remove(f.Name())
		return f, nil
	}
	if err := os.Rename(f.Name(), s.path(h)); err != nil {
		s.onError(fmt.Errorf("keep a blob in the image cache: %w", err))
		_ = os.Remove(f.Name())
		return f, nil
	}
	size := int64(0)
	if info, err := f.Stat(); err == nil {
		size = info.Size()
	}
	s.evict(filepath.Base(s.path(h)), size)
	return f, nil
}

// evict removes what was used least recently until the rest fits, and what
// broken downloads left. The blob that was just stored, of the given size, stays.
func (s *store) evict(keep string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size += size
	if s.size <= s.limit && time.Since(s.looked) < lookInterval {
		return
	}
	s.looked = time.Now()
	s.size = s.evictNow(keep)
}

// evictNow looks at the whole folder and returns how much is left of it.
func (s *store) evictNow(keep string) int64 {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.onError(fmt.Errorf("read the image cache: %w", err))
		return 0
	}
	var blobs []fs.FileInfo
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if strings.HasPrefix(info.Name(), tempPattern) {
			if time.Since(info.ModTime()) > tempAge {
				_ = os.Remove(filepath.Join(s.dir, info.Name()))
			}
			continue
		}
		blobs, total = append(blobs, info), total+info.Size()
	}
	slices.SortFunc(blobs, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range blobs {
		if total <= s.limit {
			break
		}
		if info.Name() == keep {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.onError(fmt.Errorf("evict from the image cache: %w", err))
			continue
		}
		total -= info.Size()
	}
	return total
}

// verify reads r to its end and compares it with its digest.
func verify(r io.Reader, want v1.Hash) error {
	hasher, err := v1.Hasher(want.Algorithm)
	if err != nil {
		return err
	}
	if _, err := io.Copy(hasher, r); err != nil {
		return err
	}
	return compare(want, hasher.Sum(nil))
}

func compare(want v1.Hash, got []byte) error {
	if g := hex.EncodeToString(got); g != want.Hex {
		return failf(ReasonDigestMismatch, "The registry or something between serves other content than it promises; do not use it.",
			"the content has the digest %s:%s, not %s", want.Algorithm, g, want)
	}
	return nil
}

// isLocal reports whether an error comes from files on this side.
func isLocal(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return errors.As(err, &path) || errors.As(err, &link)
}

// readAll reads a small blob.
func readAll(f *os.File) ([]byte, error) {
	defer func() { _ = f.Close() }()
	var b bytes.Buffer
	_, err := b.ReadFrom(f)
	return b.Bytes(), err
}
