package archive

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"lockstep.run/lockstep/internal/limits"
)

// ReadFolder reads the files of a package, without files and folders with a leading dot.
func ReadFolder(dir string) (Files, error) {
	// A Root prevents symbolic links from leading out of the folder.
	top, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the package folder: %w", err)
	}

	defer func() { _ = top.Close() }()
	c := collector{files: Files{}}
	c.selection.setDefaults()
	entries := 0
	err = fs.WalkDir(top.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if p == "." {
			return nil
		}
		if entries++; entries > limits.ArchiveEntries {
			return limitError(0, "", "", "the folder has more than %d entries", limits.ArchiveEntries)
		}
		switch {
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return checkName(0, p, append([]string{root}, strings.Split(p, "/")...))
		}
		return addFile(&c, top, p, d)
	})
	if err != nil {
		return nil, fmt.Errorf("read the package folder: %w", err)
	}

	return c.files, nil
}

// addFile adds a regular file. It refuses links even within the folder, because an image cannot
// have them either.
func addFile(c *collector, top *os.Root, p string, d fs.DirEntry) error {
	if err := checkName(0, p, append([]string{root}, strings.Split(p, "/")...)); err != nil {
		return err
	}
	if !d.Type().IsRegular() {
		return entryError(0, p, onlyFiles, "it is not a regular file")
	}
	f, err := top.Open(p)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return c.add(c.files, p, 0, p, f)
}
