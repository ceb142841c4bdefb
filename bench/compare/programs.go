package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	controller = "github.com/fluxcd/kustomize-controller"
	// sourceController has the definitions of sources. It is not built.
	sourceController = "github.com/fluxcd/source-controller@v1.9.0"
	// toolsModule has the version of the controller.
	toolsModule = "tools/compare/go.mod"
)

// build builds a package of a module into the folder for tasks, and returns the program.
func build(ctx context.Context, name, modfile, path string) (string, error) {
	out, err := filepath.Abs(filepath.Join(".task", "compare", name))
	if err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "compare: building %s, which takes minutes the first time\n", name)
	_, err = goCommand(ctx, "build", "-modfile="+modfile, "-ldflags=-s -w", "-o", out, path)
	return out, err
}

func goCommand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// fluxDefinitions returns the files with the definitions that the controller needs.
func fluxDefinitions(ctx context.Context) ([]string, error) {
	dir, err := goCommand(ctx, "list", "-modfile="+toolsModule, "-m", "-f", "{{.Dir}}", controller)
	if err != nil {
		return nil, err
	}

	text, err := goCommand(ctx, "mod", "download", "-json", sourceController)
	if err != nil {
		return nil, err
	}

	var source struct{ Dir string }
	if err := json.Unmarshal(text, &source); err != nil {
		return nil, err
	}

	var files []string
	for _, d := range []string{strings.TrimSpace(string(dir)), source.Dir} {
		found, err := filepath.Glob(filepath.Join(d, "config", "crd", "bases", "*.yaml"))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}

	return files, nil
}
