package content

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"lockstep.run/lockstep/internal/loader"
)

// WriteFolder creates a folder completely or not at all.
func WriteFolder(folder string, files loader.Files) error {
	// The folder is complete before it gets its name, and the temporary one is removed after an
	// error.
	write := func() error {
		if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
			return err
		}
		dir, err := os.MkdirTemp(filepath.Dir(folder), ".kubectl-package-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := cmp.Or(WriteFiles(dir, files), os.Chmod(dir, 0o755)); err != nil {
			return err
		}

		return os.Rename(dir, folder)
	}
	if err := write(); err != nil {
		return fmt.Errorf("write the package: %w", err)
	}

	return nil
}

// WriteFiles writes files below a folder. Their paths cannot leave it.
func WriteFiles(dir string, files loader.Files) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()

	for _, p := range files.Paths() {
		if err := root.MkdirAll(path.Dir(p), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", p, err)
		}
		if err := root.WriteFile(p, files[p], 0o644); err != nil {
			return fmt.Errorf("write %s: %w", p, err)
		}
	}

	return nil
}

// WriteFile is atomic, and replaces a link.
func WriteFile(path string, data []byte) error {
	err := WriteAtomically(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteAtomically replaces a file by a complete one.
func WriteAtomically(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".kubectl-package-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(write(file), file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
