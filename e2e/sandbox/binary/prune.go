package binary

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// keepBuilds is the number of binaries to keep, so that switching between branches does not rebuild
// them each time. A binary has about 140 MB.
const keepBuilds = 4

// touch notes that the binary in dir was used.
func touch(dir string) {
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
}

// prune removes the binaries in store that were not used for the longest time.
// It ignores binaries that it cannot remove.
func prune(store, current string) {
	entries, err := os.ReadDir(store)
	if err != nil {
		return
	}
	type build struct {
		dir  string
		used time.Time
	}
	var builds []build
	for _, entry := range entries {
		dir := filepath.Join(store, entry.Name())
		info, err := entry.Info()
		if err == nil && entry.IsDir() && dir != current && Built(dir) {
			builds = append(builds, build{dir, info.ModTime()})
		}
	}
	slices.SortFunc(builds, func(a, b build) int { return b.used.Compare(a.used) })
	for i, b := range builds {
		if i >= keepBuilds-1 {
			_ = os.RemoveAll(b.dir)
		}
	}
}
