package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// platform is an operating system with an architecture.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// all are the platforms of the plugin.
var all = []platform{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

func parsePlatforms(list string) ([]platform, error) {
	if list == "" {
		return all, nil
	}
	var chosen []platform
	for name := range strings.SplitSeq(list, ",") {
		found := false
		for _, p := range all {
			if p.String() == name {
				chosen, found = append(chosen, p), true
			}
		}
		if !found {
			return nil, fmt.Errorf("--platforms: %s is none of %v", name, all)
		}
	}
	return chosen, nil
}

// levels of processors are those that Go compiles for by default, whatever the environment says.
var levels = []string{"GOAMD64=v1", "GOARM64=v8.0"}

// command runs a program of this project, whose output is what it prints.
func command(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stderr = slices.Concat(os.Environ(), levels, env), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}

// buildImage writes the image of the manager, and reads its digest.
func (r *release) buildImage(ctx context.Context, scratch string) error {
	layout := filepath.Join(scratch, "image")
	var architectures []string
	for _, p := range r.platforms {
		if p.os == "linux" {
			architectures = append(architectures, p.arch)
		}
	}
	printed, err := command(ctx, []string{"CGO_ENABLED=0"}, "go", "run", "./hack/image", "--out", layout, "--version", r.version,
		"--created", r.created.Format(time.RFC3339), "--architectures", strings.Join(architectures, ","))
	if err != nil {
		return err
	}
	var found bool
	if _, r.digest, found = strings.Cut(printed, "@"); !found {
		return fmt.Errorf("hack/image printed no digest: %s", printed)
	}
	files, err := readFolder(layout)
	if err != nil {
		return err
	}
	return r.writeTar("lockstep-manager-"+r.version+".oci.tar", files)
}

// buildPlugins writes an archive of the plugin for each platform.
func (r *release) buildPlugins(ctx context.Context, scratch string) error {
	for _, p := range r.platforms {
		fmt.Fprintf(os.Stderr, "building the plugin for %s\n", p)
		program := filepath.Join(scratch, r.archive(p))
		_, err := command(ctx, []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=-mod=readonly"}, "go", "build",
			"-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X lockstep.run/lockstep/internal/kube/version.Version="+r.version,
			"-o", program, "./cmd/kubectl-package")
		if err != nil {
			return err
		}
		content, err := os.ReadFile(program)
		if err != nil {
			return err
		}
		license, err := os.ReadFile("LICENSE")
		if err != nil {
			return err
		}
		files := []file{{"LICENSE", 0o644, license}, {programOf(p), 0o755, content}}
		if p.os != "windows" {
			complete, err := os.ReadFile("cmd/kubectl-package/kubectl_complete-package")
			if err != nil {
				return err
			}
			files = append(files, file{"kubectl_complete-package", 0o755, complete})
		}
		if err := r.writeTar(r.archive(p), files); err != nil {
			return err
		}
	}
	return nil
}

// archive is the name of the archive of a platform.
func (r *release) archive(p platform) string {
	return fmt.Sprintf("kubectl-package-%s-%s-%s.tar.gz", r.version, p.os, p.arch)
}

func programOf(p platform) string {
	if p.os == "windows" {
		return "kubectl-package.exe"
	}
	return "kubectl-package"
}

// listModules writes the software bill of materials of both programs, for the first platform that is built.
func (r *release) listModules(ctx context.Context, scratch string) error {
	tool := filepath.Join(scratch, "cyclonedx-gomod")
	if _, err := command(ctx, []string{"CGO_ENABLED=0"}, "go", "-C", "operate", "build", "-o", tool, "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod"); err != nil {
		return err
	}
	for _, name := range []string{"kubectl-package", "lockstep-manager"} {
		program := filepath.Join(scratch, name)
		_, err := command(ctx, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=-mod=readonly"}, "go", "build",
			"-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X lockstep.run/lockstep/internal/kube/version.Version="+r.version,
			"-o", program, "./cmd/"+name)
		if err != nil {
			return err
		}
		// Without its own number and time, which differ from run to run.
		_, err = command(ctx, nil, tool, "bin", "-json", "-std", "-noserial", "-notimestamp", "-version", r.version,
			"-output", filepath.Join(r.folder, name+"-"+r.version+".cdx.json"), program)
		if err != nil {
			return err
		}
	}
	return nil
}
