package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// levels are the processor levels that Go compiles for by default, regardless of the environment.
var levels = []string{"GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0"}

// command runs a program of this project, and returns its output.
func command(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stderr = slices.Concat(os.Environ(), levels, env), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}

// compile builds one of both programs for a platform. The result is the same on every machine.
func (r *release) compile(ctx context.Context, scratch, name string, p platform) (path string, err error) {
	fmt.Fprintf(os.Stderr, "building %s for %s\n", name, p)
	path = filepath.Join(scratch, name+"-"+p.os+"-"+p.arch)
	_, err = command(ctx, []string{"GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=-mod=readonly"}, "go", "build",
		"-trimpath", "-gcflags=all=-dwarf=false", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X lockstep.run/lockstep/internal/kube/version.Version="+r.version,
		"-o", path, "./cmd/"+name)
	return path, err
}

// buildPlugins writes an archive of the plugin for each platform.
func (r *release) buildPlugins(ctx context.Context, scratch string) error {
	for _, p := range r.platforms {
		program, err := r.compile(ctx, scratch, "kubectl-package", p)
		if err != nil {
			return err
		}
		files := []file{{path: "LICENSE", mode: 0o644}, {path: programOf(p), mode: 0o755}}
		sources := []string{"LICENSE", program}
		if p.os != "windows" {
			files = append(files, file{path: "kubectl_complete-package", mode: 0o755})
			sources = append(sources, "cmd/kubectl-package/kubectl_complete-package")
		}
		for i, source := range sources {
			if files[i].content, err = os.ReadFile(source); err != nil {
				return err
			}
		}
		if err := r.writeTar(r.archive(p), files); err != nil {
			return err
		}
	}

	return nil
}

// archive returns the name of a platform's archive.
func (r *release) archive(p platform) string {
	return fmt.Sprintf("kubectl-package-%s-%s-%s.tar.gz", r.version, p.os, p.arch)
}

func programOf(p platform) string {
	if p.os == "windows" {
		return "kubectl-package.exe"
	}
	return "kubectl-package"
}

// listModules writes the software bills of materials of both programs, for the first platform of
// Linux.
func (r *release) listModules(ctx context.Context, scratch string) error {
	p := r.platforms[slices.IndexFunc(r.platforms, func(p platform) bool { return p.os == "linux" })]
	for _, name := range []string{"kubectl-package", "lockstep-manager"} {
		bill, err := filepath.Abs(filepath.Join(r.folder, name+"-"+r.version+".cdx.json"))
		if err != nil {
			return err
		}
		// The number and the time are left out, because they differ from run to run.
		_, err = command(ctx, nil, "go", "-C", "operate", "tool", "cyclonedx-gomod", "bin", "-json", "-std", "-noserial", "-notimestamp",
			"-version", r.version, "-output", bill, filepath.Join(scratch, name+"-"+p.os+"-"+p.arch))
		if err != nil {
			return err
		}
	}

	return nil
}
