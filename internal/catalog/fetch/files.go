package fetch

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"path"
	"slices"
	"strings"
)

// isContent reports whether a file may hold documents.
func isContent(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// digestOf returns the digest of paths and contents, each with its length before it.
func digestOf(files map[string][]byte) string {
	h := sha256.New()
	write := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		write([]byte(p))
		write(files[p])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
