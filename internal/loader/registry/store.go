package registry

import (
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

	"lockstep.run/lockstep/internal/limits"
)

// store keeps blobs on disk by digest. Several processes can share it. Without a folder, it keeps a
// blob as long as it is open.
type store struct {
	dir     string
	limit   int64
	onError func(error)

	mu sync.Mutex // of evictions
	// room is how many bytes can be stored before the next look at the folder, which costs a system
	// call per blob. An eviction frees an evictionPart of the limit for that.
	room int64
}

const (
	blobFolder  = "blobs"
	tempPattern = "incoming-"
	// tempAge is the age from which an eviction removes a temporary file.
	tempAge      = time.Hour
	evictionPart = 16
)

// newStore creates the folder. Only its owner can read it, because blobs can be of private images.
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

// view is the part of a store with the content of one repository, or the shared part.
type view struct {
	*store
	suffix string
}

// path returns the file of a blob.
func (s view) path(h v1.Hash) string { return filepath.Join(s.dir, h.Algorithm+"-"+h.Hex+s.suffix) }

// has reports whether a blob is stored, even if it is damaged.
func (s view) has(h v1.Hash) bool {
	if s.dir == "" {
		return false
	}
	_, err := os.Stat(s.path(h))
	return err == nil
}

// get returns a blob from disk, or downloads and stores it. The caller closes the file.
func (s view) get(h v1.Hash, download func(io.Writer) error) (*os.File, error) {
	if f := s.open(h); f != nil {
		return f, nil
	}
	return s.put(h, download)
}

// open returns a stored blob that matches its digest, or nil. It removes a damaged one.
func (s view) open(h v1.Hash) *os.File {
	if s.dir == "" {
		return nil
	}

	f, err := os.Open(s.path(h))
	if err != nil {
		return nil
	}

	if err := verify(f, h); err != nil {
		_ = f.Close()
		_ = os.Remove(s.path(h))
		s.onError(fmt.Errorf("the image cache was damaged: %w", err))
		return nil
	}

	if _, err := f.Seek(0, io.SeekStart); err != nil {
		_ = f.Close()
		return nil
	}

	// The modification time is the time of the last use, which decides about eviction.
	now := time.Now()
	_ = os.Chtimes(s.path(h), now, now)
	return f
}

// put stores the output of download, which has verified it, and returns it for reading.
func (s view) put(h v1.Hash, download func(io.Writer) error) (*os.File, error) {
	f, err := os.CreateTemp(s.dir, tempPattern)
	if err != nil {
		return nil, err
	}
	if err = download(f); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}

	if err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return nil, err
	}

	if s.dir == "" {
		// Without a cache, the file needs no name: the system frees it when it is closed.
		_ = os.Remove(f.Name())
		return f, nil
	}

	if err := os.Rename(f.Name(), s.path(h)); err != nil {
		s.onError(fmt.Errorf("keep a blob in the image cache: %w", err))
		_ = os.Remove(f.Name())
		return f, nil
	}

	if info, err := f.Stat(); err == nil {
		s.evict(filepath.Base(s.path(h)), info.Size())
	}
	return f, nil
}

// evict removes the least recently used blobs once new ones have used the free part. It keeps the
// newest one, which is about to be read. Other processes write to the folder as well.
func (s *store) evict(keep string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.room -= size; s.room > 0 {
		return
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.onError(fmt.Errorf("read the image cache: %w", err))
		return
	}

	s.room = s.limit / evictionPart
	var blobs []fs.FileInfo
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case !strings.HasPrefix(info.Name(), tempPattern):
			blobs, total = append(blobs, info), total+info.Size()
		// A process that was killed during a download left this file behind.
		case time.Since(info.ModTime()) > tempAge:
			_ = os.Remove(filepath.Join(s.dir, info.Name()))
		}
	}

	slices.SortFunc(blobs, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range blobs {
		if total <= s.limit-s.room {
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
}

// verify compares the digest of content.
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

// compare compares a computed digest with the expected one.
func compare(want v1.Hash, got []byte) error {
	if hex.EncodeToString(got) != want.Hex {
		return failf(ReasonDigestMismatch, "The registry or something between serves other content than it promises; do not use it.",
			"the content has another digest than %s", want)
	}
	return nil
}

// readAll reads and closes a stored manifest. The digest can belong to a layer, which is larger.
func readAll(f *os.File) ([]byte, error) {
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limits.ImageManifestBytes+1))
	if err == nil && len(data) > limits.ImageManifestBytes {
		return nil, failf(ReasonLimit, "", "the manifest has more than %d bytes, the limit", limits.ImageManifestBytes)
	}
	return data, err
}
