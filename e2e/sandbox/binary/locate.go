package binary

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is the first line of the main module's go.mod, which identifies its folder.
const module = "module lockstep.run/lockstep"

// recipe is part of the hash. Change it if a change of the build changes the binary.
const recipe = "1"

// Name is the file name of the binary in its folder.
const Name = "sandbox"

// Repository returns the folder of the main module that dir lies in.
func Repository(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for at := abs; ; at = filepath.Dir(at) {
		content, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if first, _, _ := bytes.Cut(content, []byte("\n")); err == nil && string(bytes.TrimSpace(first)) == module {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("folder %s is not inside a checkout of Lockstep: run from one, or name a built binary with LOCKSTEP_SANDBOX", abs)
		}
	}
}

// Dir returns the folder for the binary of the checkout at repository, even if the binary
// does not exist yet.
func Dir(ctx context.Context, repository string) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	hash, err := contentHash(ctx, filepath.Join(repository, "sandbox"))
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "sandbox-bin", hash), nil
}

// Built reports whether the binary lies in dir.
func Built(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, Name))
	return err == nil
}

func cacheDir() (string, error) {
	if dir := os.Getenv("LOCKSTEP_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "lockstep"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w; set LOCKSTEP_CACHE", err)
	}
	return filepath.Join(home, ".cache", "lockstep"), nil
}

// contentHash returns 16 hexadecimal digits that cover all inputs of the build.
func contentHash(ctx context.Context, source string) (string, error) {
	platform, err := goCommand(ctx, source, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", recipe, platform)
	err = filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !compiled(entry.Name()) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(source, path)
		fmt.Fprintf(sum, "%s %x\n", filepath.ToSlash(relative), sha256.Sum256(content))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the sandbox's sources: %w", err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:16], nil
}

// compiled reports whether a file is part of the binary.
func compiled(name string) bool {
	return name == "go.mod" || name == "go.sum" ||
		(strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"))
}

// goCommand returns the output of the go command in dir.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, buildEnv()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("go %s in %s: %w: %s", args[0], dir, err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// buildEnv returns the environment without the caller's own settings for builds, so that all
// builds produce the same binary and need no C compiler. The script task uses the same flags:
// the manager then takes the packages that both need from Go's build cache. Compilers are short
// processes, so collecting their garbage wastes a tenth of the time.
func buildEnv() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -gcflags=all=-dwarf=false", "GOGC=400", "GOWORK=off")
}
