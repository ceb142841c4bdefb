package binary

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// reportInterval is the time between two lines of progress.
const reportInterval = 30 * time.Second

// Ensure returns the folder with the binary for the checkout at repository. It builds the
// binary if it is missing and writes the progress to progress. That takes about 10 minutes
// on 2 cores with an empty build cache.
func Ensure(ctx context.Context, repository string, progress io.Writer) (string, error) {
	dir, err := Dir(ctx, repository)
	if err != nil {
		return "", err
	}
	if Built(dir) {
		touch(dir)
		return dir, nil
	}
	store := filepath.Dir(dir)
	if err := os.MkdirAll(store, 0o755); err != nil {
		return "", fmt.Errorf("creating the folder for the sandbox's binary: %w", err)
	}
	unlock, err := Lock(ctx, func() { fmt.Fprintln(progress, "Waiting for another process that builds the sandbox.") }, filepath.Join(store, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if Built(dir) {
		return dir, nil
	}
	if err := build(ctx, filepath.Join(repository, "sandbox"), dir, progress); err != nil {
		return "", err
	}
	prune(store, dir)
	return dir, nil
}

// Lock waits until this process has locked one of the files, which it creates. waiting is called
// once if that takes time.
func Lock(ctx context.Context, waiting func(), paths ...string) (unlock func(), err error) {
	for told := false; ; told = true {
		for _, path := range paths {
			file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				return nil, fmt.Errorf("opening a lock: %w", err)
			}
			err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			if err == nil {
				return func() { file.Close() }, nil
			}
			file.Close()
			if !errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, fmt.Errorf("locking %s: %w", path, err)
			}
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another process: %w", context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func build(ctx context.Context, source, dir string, progress io.Writer) error {
	begin := time.Now()
	version, err := goCommand(ctx, source, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "Building the sandbox: etcd, Kubernetes %s, kubectl, kwok and a registry in one binary.\n"+
		"This takes about 10 minutes on 2 cores the first time, and seconds when Go's build cache has the parts: if it is interrupted, the next run continues.\n", version)
	packages, err := goCommand(ctx, source, "list", "-deps", ".")
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".building-")
	if err != nil {
		return fmt.Errorf("creating a folder to build in: %w", err)
	}
	defer os.RemoveAll(temp)
	target := filepath.Join(temp, Name)
	if err := compile(ctx, source, target, version, strings.Count(packages, "\n")+1, progress); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, target, "link").CombinedOutput(); err != nil {
		return fmt.Errorf("making the components' symlinks: %w: %s", err, out)
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return fmt.Errorf("finishing the build: %w", err)
	}
	if err := os.Rename(temp, dir); err != nil {
		return fmt.Errorf("finishing the build: %w", err)
	}
	fmt.Fprintf(progress, "Built the sandbox in %s: %s\n", time.Since(begin).Round(time.Second), filepath.Join(dir, Name))
	return nil
}

// compile runs go build and reports how many of total packages were compiled.
func compile(ctx context.Context, source, target, version string, total int, progress io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-buildvcs=false", "-ldflags", ldflags(version), "-o", target, ".")
	cmd.Dir, cmd.Env = source, buildEnv()
	output, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting go build: %w", err)
	}
	var compiled atomic.Int64
	stop := report(progress, &compiled, total)
	messages := readBuild(output, &compiled)
	err = cmd.Wait()
	stop()
	if err != nil {
		return fmt.Errorf("building the sandbox in %s: %w\n%s", source, err, messages)
	}
	return nil
}

// readBuild counts the packages that go build names and returns its other lines.
func readBuild(output io.Reader, compiled *atomic.Int64) string {
	var messages strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		line := lines.Text()
		if strings.ContainsAny(line, " :\t#") {
			messages.WriteString(line + "\n")
			continue
		}
		compiled.Add(1)
	}
	return messages.String()
}

func report(progress io.Writer, compiled *atomic.Int64, total int) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	begin := time.Now()
	go func() {
		defer close(ended)
		ticker := time.NewTicker(reportInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintf(progress, "  %s: %d of at most %d packages compiled\n",
					time.Since(begin).Round(time.Second), compiled.Load(), total)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// ldflags strip debug information and state the version of Kubernetes, which its own release
// process does the same.
func ldflags(version string) string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, value := range []string{
			"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + minor, "gitTreeState=clean", "gitCommit=",
		} {
			flags = append(flags, "-X", pkg+"."+value)
		}
	}
	return strings.Join(flags, " ")
}
