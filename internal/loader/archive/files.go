package archive

import (
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/limits"
)

// Files are the files of a package: content by path. Paths are relative to
// /package, with slashes. Whoever holds Files only reads them.
type Files map[string][]byte

// Paths returns the paths in their order.
func (f Files) Paths() []string {
	paths := make([]string, 0, len(f))
	for p := range f {
		paths = append(paths, p)
	}
	slices.SortFunc(paths, ComparePaths)
	return paths
}

// ComparePaths orders paths with the slash as the lowest character, so that
// what is in folder "a" comes before "a.yaml" and "ab".
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

// collector gathers files within the limits on packages.
type collector struct {
	files Files
	bytes int64
}

// count takes the size of one more file into account. A file that is replaced
// later counts as well, so that rewriting one path for ever is bounded.
func (c *collector) count(layer int, entry string, size int) error {
	c.bytes += int64(size)
	if c.bytes > limits.PackageBytes {
		return limitError(layer, entry, "Leave out what the package does not need.",
			"the files below /package have more than %d bytes", int64(limits.PackageBytes))
	}
	return nil
}

// checkCount refuses too many files.
func checkCount(layer int, entry string, files Files) error {
	if len(files) > limits.PackageFiles {
		return limitError(layer, entry, "Put several objects into one file.", "more than %d files below /package", limits.PackageFiles)
	}
	return nil
}
