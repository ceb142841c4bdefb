package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// overlay is what the go command reads instead of the sources.
type overlay struct {
	// File is the JSON that go build -overlay takes.
	File string
	// Packages are those of the patched files, as ./internal/phases.
	Packages []string
}

// apply patches copies of the files below root that a patch touches, in the
// folder dir.
func apply(ctx context.Context, root, patch, dir string) (overlay, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return overlay{}, err
	}
	files, err := touched(ctx, patch, dir)
	if err != nil {
		return overlay{}, err
	}
	var o overlay
	replace := map[string]string{}
	for _, file := range files {
		copied := filepath.Join(dir, file)
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return overlay{}, err
		}
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return overlay{}, err
		}
		if err := os.WriteFile(copied, content, 0o644); err != nil {
			return overlay{}, err
		}
		replace[filepath.Join(root, file)] = copied
		o.Packages = append(o.Packages, "./"+filepath.Dir(file))
	}
	// One line of context has to fit on both sides, wherever that is.
	if _, err := git(ctx, dir, "apply", "-C1", "--recount", "--whitespace=nowarn", patch); err != nil {
		return overlay{}, err
	}
	slices.Sort(o.Packages)
	o.Packages = slices.Compact(o.Packages)
	o.File = filepath.Join(dir, "overlay.json")
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return overlay{}, err
	}
	return o, os.WriteFile(o.File, raw, 0o644)
}

// touched returns the files that a patch changes.
func touched(ctx context.Context, patch, dir string) ([]string, error) {
	out, err := git(ctx, dir, "apply", "--numstat", "-z", "--recount", patch)
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.SplitSeq(strings.TrimRight(out, "\x00"), "\x00") {
		if fields := strings.SplitN(line, "\t", 3); len(fields) == 3 {
			files = append(files, fields[2])
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the patch changes no file")
	}
	return files, nil
}

// git runs as if there were no repository: git apply would leave files alone that
// it thinks belong to one.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
