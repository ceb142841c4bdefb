package testrunner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/aymanbagabas/go-udiff"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
)

// fixturesFolder is where fixtures are, beside the manifest.
const fixturesFolder = ".test-fixtures"

// Change is how a file differs from its fixture.
type Change string

const (
	// Differs is that the text is another one.
	Differs Change = "differs"
	// Missing is that a file is rendered which has no fixture.
	Missing Change = "no fixture"
	// Extra is that there is a fixture of a file that is not rendered, or is
	// empty or filtered out.
	Extra Change = "not rendered"
)

// FileDiff is one file that differs from its fixture.
type FileDiff struct {
	// Path below the fixture folder.
	Path   string `json:"path"`
	Change Change `json:"change"`
	// Diff from the fixture to what is rendered, in unified form; empty where a
	// file is too large for one.
	Diff string `json:"diff,omitempty"`
}

// folderOf is where the fixtures of a case are, relative to the package.
func folderOf(component, name string) string {
	if component != "" {
		return path.Join("components", component, fixturesFolder, name)
	}
	return path.Join(fixturesFolder, name)
}

// readFixtures returns the files of a fixture folder; there is false where it
// does not exist.
func readFixtures(folder, relative string) (files loader.Files, there bool, err error) {
	if err := checkWay(folder, path.Dir(relative)); err != nil {
		return nil, false, err
	}
	dir := filepath.Join(folder, filepath.FromSlash(relative))
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("read the fixtures: %w", err)
	case !info.IsDir():
		return nil, false, fmt.Errorf("read the fixtures: %s is no folder", dir)
	}
	files, err = loader.ReadFolder(dir)
	if err != nil {
		return nil, true, fmt.Errorf("read the fixtures: %w", err)
	}
	return files, true, nil
}

// checkWay refuses links on the way to a fixture folder: what is there is printed,
// and replaced by an update.
func checkWay(folder, relative string) error {
	for ; relative != "."; relative = path.Dir(relative) {
		at := filepath.Join(folder, filepath.FromSlash(relative))
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the fixtures: %w", err)
		}
		if !info.IsDir() {
			return fmt.Errorf("read the fixtures: %s is no folder", at)
		}
	}
	return nil
}

// compare returns how rendered files differ from their fixtures.
func compare(relative string, fixtures, rendered loader.Files) []FileDiff {
	var diffs []FileDiff
	for _, p := range rendered.Paths() {
		want, there := fixtures[p]
		switch {
		case !there:
			diffs = append(diffs, FileDiff{p, Missing, unified(relative, p, nil, rendered[p])})
		case string(want) != string(rendered[p]):
			diffs = append(diffs, FileDiff{p, Differs, unified(relative, p, want, rendered[p])})
		}
	}
	for _, p := range fixtures.Paths() {
		if _, there := rendered[p]; !there {
			diffs = append(diffs, FileDiff{p, Extra, unified(relative, p, fixtures[p], nil)})
		}
	}
	slices.SortFunc(diffs, func(a, b FileDiff) int { return slices.Compare([]string{a.Path}, []string{b.Path}) })
	return diffs
}

// unified is the difference of two texts, with the labels of Package Operator.
func unified(relative, p string, want, got []byte) string {
	if len(want)+len(got) > limits.FixtureDiffBytes {
		return ""
	}
	return udiff.Unified(path.Join(relative, p), path.Join("rendered", p), string(want), string(got))
}

// writeFixtures makes a fixture folder hold what is rendered and nothing else.
func writeFixtures(folder, relative string, rendered, present loader.Files) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("write the fixtures: %w", err)
	}
	defer root.Close()
	if err := root.MkdirAll(relative, 0o755); err != nil {
		return fmt.Errorf("write the fixtures: %w", err)
	}
	for p := range present {
		if _, keep := rendered[p]; !keep {
			if err := root.Remove(path.Join(relative, p)); err != nil {
				return fmt.Errorf("remove a fixture: %w", err)
			}
		}
	}
	for p, data := range rendered {
		target := path.Join(relative, p)
		if err := root.MkdirAll(path.Dir(target), 0o755); err != nil {
			return fmt.Errorf("write the fixtures: %w", err)
		}
		if err := root.WriteFile(target, data, 0o644); err != nil {
			return fmt.Errorf("write the fixtures: %w", err)
		}
	}
	return nil
}

// Fixtures returns the fixtures of all test cases of a package as they would be
// written, by their path in the package's folder. Its error is as that of
// loader.Inspect.
func Fixtures(ctx context.Context, files loader.Files) (loader.Files, error) {
	out := loader.Files{}
	_, err := loader.Inspect(ctx, files, func(of loader.Case) {
		if of.Name == "" {
			return
		}
		for p, data := range of.Rendered {
			out[path.Join(folderOf(of.Component, of.Name), p)] = data
		}
	})
	return out, err
}
