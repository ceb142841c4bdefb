package archive

import (
	"io"
	"maps"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/limits"
)

// Files are the read-only contents of a package by path, relative to /package.
type Files map[string][]byte

// Paths returns the paths in their order.
func (f Files) Paths() []string {
	return slices.SortedFunc(maps.Keys(f), ComparePaths)
}

// ComparePaths sorts the slash before all other characters: folder "a" comes before "a.yaml" and
// "ab".
func ComparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if a[i] == '/' {
			return -1
		}
		if b[i] == '/' {
			return 1
		}
		return int(a[i]) - int(b[i])
	}

	return len(a) - len(b)
}

// Below returns the files of a folder, with paths relative to it.
func (f Files) Below(folder string) Files {
	out := Files{}
	for p, data := range f {
		if rest, ok := strings.CutPrefix(p, folder+"/"); ok {
			out[rest] = data
		}
	}
	return out
}

// collector reads files within the limits of a selection. bytes counts all bytes that were read so
// far.
type collector struct {
	selection Selection
	files     Files
	bytes     int64
}

// add reads the file of an entry into files. Files that are replaced later are counted as well.
func (c *collector) add(files Files, path string, layer int, entry string, content io.Reader) error {
	// Headers can declare less than they contain, so the content itself is counted.
	data, err := io.ReadAll(io.LimitReader(content, limits.FileBytes+1))
	if err != nil {
		return err
	}
	if len(data) > limits.FileBytes {
		return limitError(layer, entry, "Leave it out or split it.", "the file has more than %d bytes", limits.FileBytes)
	}
	if c.bytes += int64(len(data)); c.selection.Room > 0 && c.bytes > c.selection.Room {
		return ErrRoom
	}

	if c.bytes > c.selection.Bytes {
		remedy := leaveOut + "."
		if c.selection.Bytes < limits.PackageBytes { // in a manager, its memory matters as well
			remedy = leaveOut + ", or raise GOMEMLIMIT and the memory limit of the manager."
		}
		return limitError(layer, entry, remedy, "the files have more than %d bytes", c.selection.Bytes)
	}

	files[path] = data
	return c.checkCount(layer, entry, files)
}

// checkCount refuses more files than the selection allows. Layers are checked again when they are
// applied, because each has its own files until then.
func (c *collector) checkCount(layer int, entry string, files Files) error {
	if len(files) <= c.selection.Files {
		return nil
	}
	return limitError(layer, entry, "Put several objects into one file.", "there are more than %d files", c.selection.Files)
}
