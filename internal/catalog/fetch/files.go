package fetch

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"lockstep.run/lockstep/internal/limits"
)

// isContent reports whether a file can contain documents.
func isContent(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// keeps reports whether a file is read: it can contain documents, is below a folder, and has no
// part with a leading dot in its path.
func keeps(p, folder string) bool {
	return isContent(p) && below(p, folder) && !strings.HasPrefix(p, ".") && !strings.Contains(p, "/.")
}

// below reports whether a path is the folder's own or is inside it. The empty folder is the root.
func below(p, folder string) bool {
	return folder == "" || p == folder || strings.HasPrefix(p, folder+"/")
}

// cleanSubPath returns a folder without leading and trailing slashes; empty means the root.
func cleanSubPath(field, subPath string) (string, error) {
	clean := strings.Trim(path.Clean("/"+subPath), "/")
	if slices.Contains(strings.Split(subPath, "/"), "..") {
		return "", permanent("Write it as a path from the root.", "%s: %.200q leads out of the source", field, subPath)
	}
	return clean, nil
}

// contentFolders are the folders with a repository's content. If none of them exists, everything is
// its content.
var contentFolders = []string{"repository", "packages"}

// choose selects the content of a repository from files, with paths relative to a folder. field
// names the folder in messages.
func choose(files map[string][]byte, field, folder string) (map[string][]byte, error) {
	relative := map[string][]byte{}
	for p, data := range files {
		if !below(p, folder) {
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(p, folder), "/")
		if name == "" {
			name = path.Base(p) // subPath is the file itself
		}
		relative[name] = data
	}

	for _, content := range contentFolders {
		chosen := maps.Clone(relative)
		maps.DeleteFunc(chosen, func(p string, _ []byte) bool { return !below(p, content) })
		if len(chosen) > 0 {
			return chosen, nil
		}
	}

	switch {
	case len(relative) > 0:
		return relative, nil
	case folder != "":
		return nil, permanent("Check the path.", "%s: there is no *.yaml, *.yml or *.json file below %.200q", field, folder)
	}

	return nil, permanent("Check that it is a repository of packages.", "%s holds no *.yaml, *.yml or *.json file", strings.TrimSuffix(field, ".subPath"))
}

// pathProblem returns why a file with documents cannot have a path, or an empty string if it can.
func pathProblem(p string) string {
	switch {
	case len(p) > limits.PathBytes:
		return fmt.Sprintf("has %d bytes; the limit is %d", len(p), limits.PathBytes)
	case !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) }):
		return "has a control character, or is not UTF-8"
	case strings.HasPrefix(p, "/") || path.Clean(p) != p || p == ".." || strings.HasPrefix(p, "../") || strings.Contains(p, `\`):
		return "is not relative and clean"
	case !isContent(p):
		return "does not end in .yaml, .yml or .json"
	}
	return ""
}

// digestOf returns the digest of paths and contents, each preceded by its length.
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
