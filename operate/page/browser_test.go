package page

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

const (
	browserPackage = "chromium-headless-shell"
	// These fonts make pictures look the same everywhere.
	textFont, codeFont = "fonts-inter", "fonts-jetbrains-mono"

	axeVersion = "4.14.1"
	axeDigest  = "sha512-5j5ln5gG165b1AiZBDsIcaUGLFRCsBs/Gj7fXq9Qv1w6cQSnJGMpO0rRt3xmGg1OQOhQ3sid6dbs5wqME6mvFw==" // of axe.min.js
)

// tools are the requirements of the tests besides Go.
type tools struct {
	// browser is a program, and environment its environment.
	browser     string
	environment []string
	// axe is the text of axe-core.
	axe string
}

var fetched = sync.OnceValues(func() (*tools, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	if named := os.Getenv("LOCKSTEP_CACHE"); named != "" {
		cache = named
	} else {
		cache = filepath.Join(cache, "lockstep")
	}
	at := &tools{}
	return at, errors.Join(at.fetchBrowser(filepath.Join(cache, "browser")), at.fetchAxe(filepath.Join(cache, "axe-core-"+axeVersion)))
})

// need returns the tools. If they are not available, it skips the test, or fails in CI.
func need(t *testing.T) *tools {
	t.Helper()
	at, err := fetched()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("the page is not tested in a browser: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func run(dir, name string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out.String(), nil
}

// debianName matches the name of a file in a Debian repository.
var debianName = regexp.MustCompile(`^'[^']+' ([a-z0-9.+-]+)_([^_]+)_[a-z0-9]+\.deb `)

// fetchBrowser unpacks the browser and the fonts into a folder, with the libraries that this
// machine lacks. It does not install them. If the machine has the program, it uses that.
func (at *tools) fetchBrowser(cache string) error {
	root, done := filepath.Join(cache, "root"), filepath.Join(cache, "complete")
	installed, lookErr := exec.LookPath(browserPackage)
	if _, err := os.Stat(done); err != nil {
		wanted := []string{textFont, codeFont}
		if lookErr != nil {
			wanted = append(wanted, browserPackage)
		}
		if err := unpack(cache, root, wanted); err != nil {
			return fmt.Errorf("%s and its fonts, of Debian, cannot be fetched: %w", browserPackage, err)
		}
		if err := os.WriteFile(done, nil, 0o600); err != nil {
			return err
		}
	}

	fonts := filepath.Join(cache, "fonts.conf")
	if err := os.WriteFile(fonts, fmt.Appendf(nil, fontSettings, root, filepath.Join(cache, "fonts")), 0o600); err != nil {
		return err
	}

	at.browser, at.environment = installed, []string{"FONTCONFIG_FILE=" + fonts}
	if own := filepath.Join(root, "usr/lib/chromium", browserPackage); exists(own) {
		at.browser = own
		var libraries []string
		for _, dirs := range []string{"usr/lib/*-linux-gnu*", "usr/lib/*-linux-gnu*/pulseaudio", "lib/*-linux-gnu*"} {
			found, err := filepath.Glob(filepath.Join(root, dirs))
			if err != nil {
				return err
			}
			libraries = append(libraries, found...)
		}
		at.environment = append(at.environment, "LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
	}

	if at.browser == "" {
		return fmt.Errorf("%s is not installed any more: remove %s, and it is fetched", browserPackage, cache)
	}

	_, err := run("", "env", append(slices.Clone(at.environment), at.browser, "--version")...)
	return err
}

const fontSettings = `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>%s/usr/share/fonts</dir><dir>/usr/share/fonts</dir><cachedir>%s</cachedir>
<alias binding="strong"><family>system-ui</family><prefer><family>Inter</family></prefer></alias>
<alias binding="strong"><family>sans-serif</family><prefer><family>Inter</family></prefer></alias>
<alias binding="strong"><family>monospace</family><prefer><family>JetBrains Mono</family></prefer></alias>
<alias binding="strong"><family>ui-monospace</family><prefer><family>JetBrains Mono</family></prefer></alias>
</fontconfig>
`

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// unpack fetches packages with the dependencies that this machine lacks.
func unpack(cache, root string, packages []string) error {
	debs := filepath.Join(cache, "debs")
	for _, dir := range []string{debs, root, filepath.Join(cache, "lists/partial"), filepath.Join(cache, "archives/partial")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}

	// It uses separate lists, because the machine's might be missing, and belong to root.
	own := []string{"-o", "Dir::State::lists=" + filepath.Join(cache, "lists"), "-o", "Dir::Cache=" + cache, "-o", "APT::Sandbox::User=root"}
	if _, err := run(debs, "apt-get", slices.Concat(own, []string{"update"})...); err != nil {
		return err
	}

	listed, err := run(debs, "apt-get", slices.Concat(own, []string{"--print-uris", "-qq", "-y", "--no-install-recommends", "install"}, packages)...)
	if err != nil {
		return err
	}

	var names []string
	for line := range strings.Lines(listed) {
		if found := debianName.FindStringSubmatch(line); found != nil {
			names = append(names, found[1]) // of the version that is installed next
		}
	}

	if len(names) > 0 {
		if _, err := run(debs, "apt-get", slices.Concat(own, []string{"download"}, names)...); err != nil {
			return err
		}
	}

	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}

	for _, file := range files {
		if _, err := run("", "dpkg", "-x", file, root); err != nil {
			return err
		}
	}

	return os.RemoveAll(debs)
}

// fetchAxe fetches axe-core from the npm registry.
func (at *tools) fetchAxe(cache string) error {
	file := filepath.Join(cache, "package", "axe.min.js")
	if !exists(file) {
		if err := os.MkdirAll(cache, 0o755); err != nil {
			return err
		}
		name, err := run(cache, "npm", "pack", "--silent", "axe-core@"+axeVersion)
		if err != nil {
			return fmt.Errorf("axe-core %s, of npm, cannot be fetched: %w", axeVersion, err)
		}
		if _, err := run(cache, "tar", "-xzf", strings.TrimSpace(name), "package/axe.min.js"); err != nil {
			return err
		}
	}

	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}

	sum := sha512.Sum512(text)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != axeDigest {
		return fmt.Errorf("%s has digest %s, want %s: remove it, and it is fetched", file, got, axeDigest)
	}

	at.axe = string(text)
	return nil
}

// newBrowser starts a browser with one tab. Its profile is a folder of chromedp, because some
// processes still write to it briefly after the end, when a test's folder could not be removed.
func newBrowser(t *testing.T, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	at := need(t)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(at.browser), chromedp.Env(at.environment...),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"),
	)

	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(options, more...)...)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(end)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatal(err)
	}

	return ctx
}
