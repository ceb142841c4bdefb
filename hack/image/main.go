package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// command is the package of the program that goes into the image.
const command = "lockstep.run/lockstep/cmd/lockstep-manager"

// architectures that the image is built for without a choice, all on Linux.
var architectures = []string{"amd64", "arm64"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	out := flags.String("out", "dist/image", "folder to write the OCI layout to; what it holds is replaced")
	version := flags.String("version", "", "version of the build (default: git describe)")
	created := flags.String("created", "", "time of everything in the image, RFC 3339 (default: SOURCE_DATE_EPOCH, else the commit's)")
	chosen := flags.String("architectures", strings.Join(architectures, ","), "what to build for")
	bundle := flags.String("ca-bundle", "", "file with CA certificates in PEM to put into the image (default: none)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	content, err := describe(ctx, *version, *created)
	if err != nil {
		return err
	}
	if *bundle != "" {
		if content.caBundle, err = os.ReadFile(*bundle); err != nil {
			return fmt.Errorf("read the CA bundle: %w", err)
		}
	}
	scratch, err := os.MkdirTemp("", "lockstep-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	content.architectures, content.programs = strings.Split(*chosen, ","), map[string][]byte{}
	for _, arch := range content.architectures {
		fmt.Fprintf(os.Stderr, "building %s for linux/%s\n", content.version, arch)
		program := filepath.Join(scratch, arch)
		if err := build(ctx, arch, content.version, program); err != nil {
			return err
		}
		if content.programs[arch], err = os.ReadFile(program); err != nil {
			return err
		}
	}
	index, err := assemble(content)
	if err != nil {
		return err
	}
	digest, err := write(index, *out, content)
	if err != nil {
		return err
	}
	fmt.Printf("%s %s@%s\n", *out, content.version, digest)
	return nil
}

// build compiles the manager for an architecture, statically linked and the
// same on every machine.
func build(ctx context.Context, arch, version, program string) error {
	ldflags := "-s -w -buildid= -X lockstep.run/lockstep/internal/kube/version.Version=" + version
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags,
		"-o", program, command)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=-mod=readonly")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s for linux/%s: %w", command, arch, err)
	}
	return nil
}

// describe fills in what the flags leave open from the environment and the
// repository. Without a repository the version is "dev" and the time the epoch.
func describe(ctx context.Context, version, created string) (content, error) {
	c := content{version: version, created: time.Unix(0, 0).UTC()}
	if c.version == "" {
		c.version = "dev"
		if described, err := git(ctx, "describe", "--tags", "--always", "--dirty"); err == nil {
			c.version = described
		}
	}
	if revision, err := git(ctx, "rev-parse", "HEAD"); err == nil {
		c.revision = revision
	}
	if created != "" {
		at, err := time.Parse(time.RFC3339, created)
		if err != nil {
			return content{}, fmt.Errorf("--created is no RFC 3339 time such as 2026-01-31T12:00:00Z: %w", err)
		}
		c.created = at.UTC()
		return c, nil
	}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		epoch, _ = git(ctx, "log", "-1", "--format=%ct") // without a commit: the epoch
	}
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return content{}, fmt.Errorf("SOURCE_DATE_EPOCH is no number of seconds: %w", err)
		}
		c.created = time.Unix(seconds, 0).UTC()
	}
	return c, nil
}

func git(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", args...).Output()
	return strings.TrimSpace(string(output)), err
}
