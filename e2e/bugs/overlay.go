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
	"strings"
)

// apply patches copies of the files below root that a patch touches, in the
// folder dir, and returns the JSON file that go build -overlay takes.
func apply(ctx context.Context, root, patch, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	files, err := touched(ctx, patch, dir)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, file := range files {
		copied := filepath.Join(dir, file)
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(copied, content, 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = copied
	}
	// One line of context has to fit on both sides, at any place in the file.
	if _, err := git(ctx, dir, "apply", "-C1", "--recount", "--whitespace=nowarn", patch); err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, raw, 0o644)
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

// git runs git as if there were no repository. Otherwise git apply ignores files that it
// assigns to one.
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
