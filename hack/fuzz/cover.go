package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// blocks are the statements of the files that a target is for: their number, and
// whether they were reached, by position.
type blocks map[string]block

type block struct {
	statements int
	reached    bool
}

func (b blocks) percent() float64 {
	all, reached := 0, 0
	for _, one := range b {
		all += one.statements
		if one.reached {
			reached += one.statements
		}
	}
	return 100 * float64(reached) / float64(max(all, 1))
}

// cover prints how much of its code the corpus of each target reaches: what is
// committed, and that with what is in Go's cache.
func cover(ctx context.Context, targets []target) error {
	b := binaries{}
	defer b.remove()
	var failed []error
	fmt.Printf("%-28s %-16s %10s %10s  %s\n", "package", "target", "committed", "with cache", "of")
	for _, t := range targets {
		committed, cached, err := corpora(ctx, t)
		if err != nil {
			return err
		}
		one, err := b.cover(ctx, t, committed)
		two := one
		if err == nil {
			two, err = b.cover(ctx, t, append(committed, cached...))
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", t.Package, t.Name, err))
			continue
		}
		fmt.Printf("%-28s %-16s %9.1f%% %9.1f%%  %s\n", t.Package, t.Name, one.percent(), two.percent(), strings.Join(t.Code, ", "))
	}
	return errors.Join(failed...)
}

// corpora returns the inputs of a target that are committed and those in Go's
// cache, smallest first.
func corpora(ctx context.Context, t target) (committed, cached []string, err error) {
	cache, err := cacheDir(ctx, t.Package)
	if err != nil {
		return nil, nil, err
	}
	return inputs(corpusDir(t)), inputs(filepath.Join(cache, t.Name)), nil
}

func corpusDir(t target) string { return filepath.Join(t.Package, "testdata", "fuzz", t.Name) }

func inputs(dir string) []string {
	entries, _ := os.ReadDir(dir)
	size := map[string]int64{}
	var out []string
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			p := filepath.Join(dir, e.Name())
			size[p] = info.Size()
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return int(size[a] - size[b]) })
	return out
}

// cover runs the inputs and the seeds of a target once.
func (b *binaries) cover(ctx context.Context, t target, files []string) (blocks, error) {
	binary, err := b.build(ctx, t.Package, "-cover", "-coverpkg=./"+t.Package)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.dir, "corpus-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	corpus := filepath.Join(dir, "testdata", "fuzz", t.Name)
	if err := os.MkdirAll(corpus, 0o755); err != nil {
		return nil, err
	}
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(corpus, strconv.Itoa(i)), data, 0o644); err != nil {
			return nil, err
		}
	}
	profile := filepath.Join(dir, "profile")
	cmd := exec.CommandContext(ctx, binary, "-test.run=^"+t.Name+"$", "-test.coverprofile="+profile)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return readProfile(profile, t)
}

// readProfile reads the blocks of a target's files out of a coverage profile,
// whose lines are "file:from,to statements count".
func readProfile(name string, t target) (blocks, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	out := blocks{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			continue
		}
		source, _, _ := strings.Cut(fields[0], ":")
		if len(t.Code) > 0 && !slices.Contains(t.Code, path.Base(source)) {
			continue
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, err
		}
		out[fields[0]] = block{statements: n, reached: fields[2] != "0" || out[fields[0]].reached}
	}
	return out, nil
}
