package author

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
	"slices"

	"lockstep.run/lockstep/internal/cli/author/kickstart"
	"lockstep.run/lockstep/internal/cli/author/testrunner"
	"lockstep.run/lockstep/internal/cli/author/threeway"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
)

const (
	manifestFile = "manifest.yaml"
	lockFile     = "manifest.lock.yaml"
)

// readRecord returns the record of the last run; nil if there is no folder.
func readRecord(folder string) (*kickstart.Record, error) {
	if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	files, err := loader.ReadFolder(filepath.Join(folder, kickstart.RecordFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s exists, and its %s, by which a new release is taken over, does not: name a new folder", folder, kickstart.RecordFolder)
	}
	if err != nil {
		return nil, err
	}
	record, err := kickstart.ReadRecord(files)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", filepath.Join(folder, kickstart.RecordFolder), err)
	}
	return record, nil
}

// inherit takes options without a flag from the last run.
func (c *Kickstart) inherit(opts *kickstart.Options, former kickstart.Options) {
	opts.Name = former.Name
	for flag, take := range map[string]func(){
		"namespace":      func() { opts.Namespace = former.Namespace },
		"parametrize":    func() { opts.Parameters = former.Parameters },
		"version":        func() { opts.Version = former.Version },
		"scope":          func() { opts.Scope = former.Scope },
		"add-namespaces": func() { opts.NoNamespaces = former.NoNamespaces },
		"keep":           func() { opts.KeepCRDs = former.KeepCRDs },
		"recreate":       func() { opts.RecreateJobs = former.RecreateJobs },
	} {
		if !c.given(flag) {
			take()
		}
	}
	c.namespace = opts.Namespace
}

func (c *Kickstart) upgrade(ctx context.Context, folder string, opts kickstart.Options, record *kickstart.Record, made *kickstart.Result) error {
	ours, err := loader.ReadFolder(folder)
	if err != nil {
		return err
	}
	up := record.Upgrade(ours, made, threeway.Side(c.conflicts))
	if len(up.Conflicts) > 0 {
		c.printConflicts(up.Conflicts)
		return fmt.Errorf("the package and the new release contradict each other (%d): nothing was written. Make them agree in the package, or choose by --conflicts ours or theirs", len(up.Conflicts))
	}
	next, err := made.Record(opts)
	if err != nil {
		return err
	}
	checked, err := withProvisionalLock(up.Files, ours)
	if err != nil {
		return err
	}
	found, err := (&checkFlags{}).validate(ctx, "", checked)
	if err != nil {
		return err
	}
	tested, err := testrunner.Run(ctx, ours, testrunner.Options{Folder: folder, IgnoreSchemas: true})
	if err != nil {
		return err
	}
	// The record comes last, so that a failed run can be repeated.
	if err := writeChanges(folder, "", ours, up.Files); err != nil {
		return err
	}
	if err := writeRecord(folder, next); err != nil {
		return err
	}
	if found.Valid && matchesFixtures(tested) {
		if _, err := testrunner.Run(ctx, checked, testrunner.Options{Folder: folder, Update: true, IgnoreSchemas: true}); err != nil {
			return err
		}
	}
	if found.Valid && !matchesFixtures(tested) {
		up.Notes = append(up.Notes, "fixtures were left as they are, because a test case failed before: kubectl package test --update writes them")
	}
	c.printUpgrade(folder, opts, up, !bytes.Equal(checked[lockFile], up.Files[lockFile]))
	content.PrintFindings(c.Streams.ErrOut, terminal.StylesFor(c.Streams.ErrOut), found)
	if !found.Valid {
		return fmt.Errorf("%s in the package %s: correct them there", content.Problems(len(found.Problems)), folder)
	}
	return nil
}

func matchesFixtures(tested *testrunner.Result) bool {
	return !slices.ContainsFunc(tested.Cases, func(c testrunner.Case) bool { return c.Outcome == testrunner.Failed })
}

// withProvisionalLock adds a lock for changed images, so that the package can be checked.
func withProvisionalLock(files, former loader.Files) (loader.Files, error) {
	was, errWas := kickstart.ProvisionalLock(former[manifestFile])
	now, err := kickstart.ProvisionalLock(files[manifestFile])
	if err != nil || errWas != nil || now == nil || bytes.Equal(was, now) && former[lockFile] != nil {
		return files, nil // faults of a manifest are found when it is checked
	}
	out := maps.Clone(files)
	out[lockFile] = now
	return out, nil
}

func (c *Kickstart) printConflicts(all []kickstart.Conflict) {
	const most = 50
	for _, conflict := range all[:min(len(all), most)] {
		where := conflict.File
		for _, part := range []string{conflict.Object, conflict.Field} {
			if part != "" {
				where += ": " + part
			}
		}
		fmt.Fprintf(c.Streams.ErrOut, "conflict: %s\n    was %s, is %s here, and %s in the new release\n",
			terminal.Line(where), terminal.Line(conflict.Base), terminal.Line(conflict.Ours), terminal.Line(conflict.Theirs))
	}
	if n := len(all) - most; n > 0 {
		fmt.Fprintf(c.Streams.ErrOut, "and %d more\n", n)
	}
}

func (c *Kickstart) printUpgrade(folder string, opts kickstart.Options, up *kickstart.Upgrade, locks bool) {
	if len(up.Added)+len(up.Changed)+len(up.Removed) == 0 {
		fmt.Fprintf(c.Streams.Out, "The %q package is already up-to-date.\n", opts.Name)
	} else {
		fmt.Fprintf(c.Streams.Out, "Upgraded the %q package: %d files added, %d changed, %d removed.\n", opts.Name, len(up.Added), len(up.Changed), len(up.Removed))
		for _, list := range []struct {
			sign  string
			paths []string
		}{{"+", up.Added}, {"~", up.Changed}, {"-", up.Removed}} {
			for _, p := range list.paths {
				kept := ""
				if slices.Contains(up.Kept, p) {
					kept = "  with your changes"
				}
				fmt.Fprintf(c.Streams.Out, "%s %s%s\n", list.sign, terminal.Line(p), kept)
			}
		}
		if opts.Version != "" && !c.given("version") {
			up.Notes = append(up.Notes, fmt.Sprintf("the version is still %s; name that of the new release by --version", opts.Version))
		}
	}
	for _, note := range up.Notes {
		fmt.Fprintf(c.Streams.ErrOut, "note: %s\n", terminal.Line(note))
	}
	if locks {
		fmt.Fprintf(c.Streams.Out, "Next, pin its images: kubectl package update %s\n", terminal.Line(folder))
	}
}

func writeRecord(folder string, next loader.Files) error {
	former, err := loader.ReadFolder(filepath.Join(folder, kickstart.RecordFolder))
	if err != nil {
		return err
	}
	return writeChanges(folder, kickstart.RecordFolder, former, next)
}

// writeChanges replaces changed files atomically, and removes others. It follows no links out of
// the folder.
func writeChanges(folder, below string, former, next loader.Files) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, p := range next.Paths() {
		if data, had := former[p]; had && bytes.Equal(data, next[p]) {
			continue
		}
		if err := replaceFile(root, path.Join(below, p), next[p]); err != nil {
			return fmt.Errorf("write %s: %w", path.Join(below, p), err)
		}
	}
	for _, p := range former.Paths() {
		if _, stays := next[p]; stays {
			continue
		}
		if err := root.Remove(path.Join(below, p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", path.Join(below, p), err)
		}
		// Fails unless the folder is empty.
		_ = root.Remove(path.Dir(path.Join(below, p)))
	}
	return nil
}

func replaceFile(root *os.Root, p string, data []byte) error {
	if err := root.MkdirAll(path.Dir(p), 0o755); err != nil {
		return err
	}
	provisional := path.Join(path.Dir(p), ".kickstart-"+path.Base(p))
	if err := root.WriteFile(provisional, data, 0o644); err != nil {
		return err
	}
	return root.Rename(provisional, p)
}
