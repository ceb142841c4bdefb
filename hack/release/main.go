package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// release describes the release.
type release struct {
	version   string // v0.2.0
	commit    string
	changed   bool      // since the commit, which is permitted for pre-releases
	created   time.Time // of everything
	image     string    // repository of the manager's image
	digest    string    // of its index
	url       string    // folder that the files are published in
	platforms []platform
	folder    string
}

// platform is an operating system with an architecture.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// all are the platforms of the plugin.
var all = []platform{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
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
	r := &release{platforms: all}
	flags.StringVar(&r.folder, "out", "", "new folder for the files (default: dist/VERSION)")
	flags.StringVar(&r.image, "image", imageInConfig, "where the image will be pushed to: the YAML and the chart name it by its digest")
	flags.StringVar(&r.url, "url", "", "where the files will be published, for krew (default: https://lockstep.run/releases/VERSION)")
	layout := flags.String("layout", "", "make the image alone, as an OCI layout in this folder; a layout that it holds is replaced")
	platforms := flags.String("platforms", "", "OS/ARCH,…: build plugin and image for these alone, one of Linux among them, as tests do (default: all)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *platforms != "" {
		r.platforms = slices.DeleteFunc(slices.Clone(all), func(p platform) bool { return !slices.Contains(strings.Split(*platforms, ","), p.String()) })
	}
	if len(r.platforms) == 0 {
		return fmt.Errorf("--platforms: %s is not one of %v", *platforms, all)
	}
	if err := r.readCommit(ctx); err != nil {
		return err
	}

	scratch, err := os.MkdirTemp("", "lockstep-release-")
	if err != nil {
		return err
	}

	defer os.RemoveAll(scratch)
	if *layout != "" {
		if r.version, err = command(ctx, nil, "git", "describe", "--tags", "--always", "--dirty"); err == nil {
			err = r.buildImage(ctx, scratch, *layout)
		}
		fmt.Printf("%s %s@%s\n", *layout, r.version, r.digest)
		return err
	}

	if flags.NArg() != 1 {
		return errors.New("name the version, such as v0.2.0")
	}

	r.version = flags.Arg(0)
	if err := r.check(); err != nil {
		return err
	}
	if r.folder == "" {
		r.folder = filepath.Join("dist", r.version)
	}
	if r.url == "" {
		r.url = "https://lockstep.run/releases/" + r.version
	}
	if err := r.make(ctx, scratch); err != nil {
		return err
	}

	fmt.Printf("%s %s@%s\n", r.folder, r.image, r.digest)
	return nil
}

func (r *release) make(ctx context.Context, scratch string) error {
	if err := os.MkdirAll(filepath.Dir(r.folder), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(r.folder, 0o755); err != nil {
		return fmt.Errorf("make the folder, which must be a new one: %w", err)
	}

	for _, step := range []func() error{
		func() error { return r.archiveImage(ctx, scratch) },
		func() error { return r.buildPlugins(ctx, scratch) },
		func() error { return r.listModules(ctx, scratch) },
		func() error { return r.writeManifests("config") },
		func() error { return r.writeChart("config/chart") },
		r.writeKrew, r.writeProvenance, r.writeChecksums, // these list the others
	} {
		if err := step(); err != nil {
			return err
		}
	}

	return nil
}

// readCommit reads the commit and its time, and whether there are changes since then.
func (r *release) readCommit(ctx context.Context) error {
	log, err := command(ctx, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return fmt.Errorf("read the commit: %w", err)
	}

	commit, seconds, _ := strings.Cut(log, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("read the time of the commit: %w", err)
	}

	r.commit, r.created = commit, time.Unix(at, 0).UTC()
	changes, err := command(ctx, nil, "git", "status", "--porcelain")
	r.changed = changes != ""
	return err
}

// check refuses a release that could not be rebuilt.
func (r *release) check() error {
	version, err := semver.StrictNewVersion(strings.TrimPrefix(r.version, "v"))
	if err != nil || !strings.HasPrefix(r.version, "v") {
		return fmt.Errorf("the version %s is not a semantic one such as v0.2.0: %w", r.version, err)
	}
	if version.Prerelease() != "" {
		return nil
	}
	if r.changed {
		return fmt.Errorf("there are changes that are not committed; only versions such as %s-rc.1 are built of these", r.version)
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
