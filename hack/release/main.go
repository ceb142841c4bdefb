package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// release describes the release.
type release struct {
	version   string // v0.2.0
	commit    string
	changed   bool      // since the commit, as pre-releases may be
	created   time.Time // of everything
	image     string    // repository of the manager's image
	digest    string    // of its index
	url       string    // folder that the files are published in
	platforms []platform
	folder    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	r := &release{}
	flags.StringVar(&r.folder, "out", "", "new folder for the files (default: dist/VERSION)")
	flags.StringVar(&r.image, "image", "lockstep.run/lockstep-manager", "where the image will be pushed to: the YAML and the chart name it by its digest")
	flags.StringVar(&r.url, "url", "", "where the files will be published, for krew (default: https://lockstep.run/releases/VERSION)")
	platforms := flags.String("platforms", "", "OS/ARCH,…: build plugin and image for these alone, one of Linux among them, as tests do (default: all)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("name the version, such as v0.2.0")
	}
	var err error
	r.version = flags.Arg(0)
	if r.platforms, err = parsePlatforms(*platforms); err != nil {
		return err
	}
	if r.folder == "" {
		r.folder = filepath.Join("dist", r.version)
	}
	if r.url == "" {
		r.url = "https://lockstep.run/releases/" + r.version
	}
	if err := r.describe(ctx); err != nil {
		return err
	}
	if err := r.make(ctx); err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return err
	}
	fmt.Printf("%s %s@%s\n", r.folder, r.image, r.digest)
	return nil
}

// make makes everything but what lists the files.
func (r *release) make(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(r.folder), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(r.folder, 0o755); err != nil {
		return fmt.Errorf("make the folder, which must be a new one: %w", err)
	}
	scratch, err := os.MkdirTemp("", "lockstep-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	for _, step := range []func(context.Context, string) error{r.buildImage, r.buildPlugins, r.listModules} {
		if err := step(ctx, scratch); err != nil {
			return err
		}
	}
	if err := r.writeManifests("config"); err != nil {
		return err
	}
	return r.writeChart("config/chart")
}

// describe reads commit and time, and refuses a release that could not be built again.
func (r *release) describe(ctx context.Context) error {
	version, err := semver.StrictNewVersion(strings.TrimPrefix(r.version, "v"))
	if err != nil || !strings.HasPrefix(r.version, "v") {
		return fmt.Errorf("the version %s is no semantic one such as v0.2.0: %w", r.version, err)
	}
	if r.commit, err = git(ctx, "rev-parse", "HEAD"); err != nil {
		return fmt.Errorf("read the commit: %w", err)
	}
	seconds, err := git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return fmt.Errorf("read the time of the commit: %w", err)
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("read the time of the commit: %w", err)
	}
	r.created = time.Unix(at, 0).UTC()
	changes, err := git(ctx, "status", "--porcelain")
	if err != nil {
		return fmt.Errorf("look for changes since the commit: %w", err)
	}
	if r.changed = changes != ""; version.Prerelease() != "" {
		return nil
	}
	if r.changed {
		return fmt.Errorf("there are changes that are not committed; only versions such as %s-rc.1 are built of these:\n%s", r.version, changes)
	}
	log, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	if heading := "## [" + version.String() + "] - "; !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(heading) + `\d{4}-\d\d-\d\d$`).Match(log) {
		return fmt.Errorf("CHANGELOG.md has no heading %q with a date: give the unreleased changes this one", heading)
	}
	return nil
}

func git(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", args...).Output()
	return strings.TrimSpace(string(output)), err
}
