package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// keep copies into testdata what reaches code that the seeds and the committed
// inputs do not: of everything that searches left in Go's cache, few inputs do.
func keep(ctx context.Context, targets []target) error {
	b := binaries{}
	defer b.remove()
	for _, t := range targets {
		committed, cached, err := corpora(ctx, t)
		if err != nil {
			return err
		}
		base, err := b.cover(ctx, t, committed)
		if err != nil {
			return err
		}
		k := &keeper{ctx: ctx, b: &b, t: t, base: base}
		if err := k.choose(cached); err != nil {
			return err
		}
		for _, file := range k.kept {
			if err := copyInput(file, corpusDir(t)); err != nil {
				return err
			}
		}
		fmt.Printf("%-28s %-16s %d of %d kept\n", t.Package, t.Name, len(k.kept), len(cached))
	}
	return nil
}

type keeper struct {
	ctx  context.Context
	b    *binaries
	t    target
	base blocks
	kept []string
}

// choose keeps of files those that reach something new, by halves.
func (k *keeper) choose(files []string) error {
	if len(files) == 0 {
		return nil
	}
	got, err := k.b.cover(k.ctx, k.t, files)
	if err != nil || !k.gains(got) {
		return err
	}
	if len(files) == 1 {
		k.kept = append(k.kept, files[0])
		for at, block := range got {
			if block.reached {
				k.base[at] = block
			}
		}
		return nil
	}
	half := len(files) / 2
	if err := k.choose(files[:half]); err != nil {
		return err
	}
	return k.choose(files[half:])
}

func (k *keeper) gains(got blocks) bool {
	for at, block := range got {
		if block.reached && !k.base[at].reached {
			return true
		}
	}
	return false
}

func copyInput(file, dir string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o644)
}
