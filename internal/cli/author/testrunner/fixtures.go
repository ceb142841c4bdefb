package testrunner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"

	"github.com/aymanbagabas/go-udiff"

	"lockstep.run/lockstep/internal/loader"
)

// fixturesFolder holds the fixtures, next to the manifest.
const fixturesFolder = ".test-fixtures"

// Change is the difference between a file and its fixture.
type Change string

// Changes.
const (
	Differs Change = "differs"
	// Missing is a rendered file without a fixture.
	Missing Change = "no fixture"
	// Extra is a fixture of a file that is not rendered, empty or filtered out.
	Extra Change = "not rendered"
)

// FileDiff is one file that differs from its fixture.
type FileDiff struct {
	// Path below the fixture folder.
	Path   string `json:"path"`
	Change Change `json:"change"`
	// Diff from the fixture to the rendered objects, in unified form; empty for large files.
	Diff string `json:"diff,omitempty"`
}

// folderOf returns the folder of the fixtures of a case, relative to the package.
func folderOf(component, name string) string {
	if component != "" {
		return path.Join("components", component, fixturesFolder, name)
	}
	return path.Join(fixturesFolder, name)
}

// readFixtures returns the files of a fixture folder; nil if it does not exist. It refuses links on
// the way, because the files are printed, and replaced by an update.
func readFixtures(folder, relative string) (loader.Files, error) {
	exists := true
	for at := relative; at != "."; at = path.Dir(at) {
		dir := filepath.Join(folder, filepath.FromSlash(at))
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			exists = false
		case err != nil:
			return nil, fmt.Errorf("read the fixtures: %w", err)
		case !info.IsDir():
			return nil, fmt.Errorf("read the fixtures: %s is not a folder", dir)
		}
	}

	if !exists {
		return nil, nil
	}
	files, err := loader.ReadFolder(filepath.Join(folder, filepath.FromSlash(relative)))
	if err != nil {
		return nil, fmt.Errorf("read the fixtures: %w", err)
	}

	return files, nil
}

// expectedFixtures returns the fixtures that a test case must have: the output of its templates. If
// a file without a template has a fixture, all of them need one. Package Operator writes and
// expects such sets, and both programs have to be able to check one folder.
func expectedFixtures(of loader.Case, present loader.Files) loader.Files {
	expected := maps.Clone(of.Rendered)
	for p := range of.Static {
		if _, exists := present[p]; exists {
			maps.Copy(expected, of.Static)
			break
		}
	}
	return expected
}

// compare returns how rendered files differ from their fixtures.
func compare(relative string, fixtures, rendered loader.Files) []FileDiff {
	all := maps.Clone(fixtures)
	if all == nil {
		all = loader.Files{}
	}
	maps.Copy(all, rendered)
	var diffs []FileDiff
	for _, p := range all.Paths() {
		want, expected := fixtures[p]
		got, exists := rendered[p]
		diff := FileDiff{Path: p, Change: Differs}
		switch {
		case !expected:
			diff.Change = Missing
		case !exists:
			diff.Change = Extra
		case bytes.Equal(want, got):
			continue
		}

		// The labels are Package Operator's.
		diff.Diff = udiff.Unified(path.Join(relative, p), path.Join("rendered", p), string(want), string(got))
		diffs = append(diffs, diff)
	}

	return diffs
}

// writeFixtures replaces the content of a fixture folder.
func writeFixtures(folder, relative string, rendered, present loader.Files) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("write the fixtures: %w", err)
	}
	defer root.Close()
	err = root.MkdirAll(relative, 0o755)
	for p := range present {
		if _, keep := rendered[p]; !keep && err == nil {
			err = root.Remove(path.Join(relative, p))
		}
	}

	for p, data := range rendered {
		target := path.Join(relative, p)
		if err == nil {
			// The root keeps the paths of a package inside the folder, even if a link leads out of
			// it.
			err = root.MkdirAll(path.Dir(target), 0o755)
		}
		if err == nil {
			err = root.WriteFile(target, data, 0o644)
		}
	}

	if err != nil {
		return fmt.Errorf("write the fixtures: %w", err)
	}
	return nil
}

// Fixtures returns the fixtures of all test cases of a package by their path in its folder. The
// errors are loader.Inspect's.
func Fixtures(ctx context.Context, files loader.Files) (loader.Files, error) {
	out := loader.Files{}
	_, err := loader.Inspect(ctx, files, func(of loader.Case) {
		// A case without a name is the default configuration, which has no fixtures.
		if of.Name == "" {
			return
		}
		for p, data := range of.Rendered {
			out[path.Join(folderOf(of.Component, of.Name), p)] = data
		}
	})

	return out, err
}
