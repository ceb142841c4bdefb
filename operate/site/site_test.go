package site

import (
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	reference = regexp.MustCompile(`(?:href|src)=["']?([^"'\s>]+)`)
	id        = regexp.MustCompile(`id=["']?([^"'\s>]+)`)
)

// The site has every page of docs/. Internal links lead to existing pages and headings, nothing is
// loaded from other sites, and the search index has the pages' content.
func TestSite(t *testing.T) {
	out := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "-C", "../../site", "tool", "hugo", "--source", "hugo", "--destination", out, "--panicOnWarning")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}

	pages := map[string]string{}
	err := filepath.WalkDir(out, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".html" {
			return err
		}
		text, err := os.ReadFile(path)
		pages[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	sources, err := filepath.Glob("../../docs/*/*.md")
	if err != nil || len(pages) < len(sources) {
		t.Errorf("%d pages are made of more than %d: %v", len(pages), len(sources), err)
	}

	for path, text := range pages {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			checkLink(t, out, path, m[1], pages)
		}
	}

	checkIndex(t, filepath.Join(out, "index.json"), len(sources))
	script, err := os.ReadFile(filepath.Join(out, "search.js"))
	if lines := strings.Count(string(script), "\n"); err != nil || lines > 100 {
		t.Errorf("the script has %d lines: %v", lines, err)
	}
}

func checkLink(t *testing.T, out, page, link string, pages map[string]string) {
	t.Helper()
	name := strings.TrimPrefix(page, out)
	to, err := url.Parse(link)
	switch {
	case err != nil:
		t.Errorf("%s: %s: %v", name, link, err)
		return
	case to.Scheme != "" || to.Host != "":
		return // in a text, or refused by the policy of the page
	}

	path := page
	if to.Path != "" {
		path = filepath.Join(filepath.Dir(page), filepath.FromSlash(to.Path))
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "index.html")
	}

	text, isPage := pages[path]
	if _, err := os.Stat(path); err != nil {
		t.Errorf("%s links to %s, which does not exist", name, link)
		return
	}
	if to.Fragment == "" || !isPage {
		return
	}

	for _, m := range id.FindAllStringSubmatch(text, -1) {
		if m[1] == to.Fragment {
			return
		}
	}

	t.Errorf("%s links to %s, which has no such heading", name, link)
}

func checkIndex(t *testing.T, path string, atLeast int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	var index []struct{ Title, URL, Text string }
	if err := json.Unmarshal(text, &index); err != nil || len(index) < atLeast {
		t.Fatalf("the index has %d pages: %v", len(index), err)
	}

	for _, page := range index {
		if page.Title == "" || page.URL == "" && page.Title != "Documentation" || len(page.Text) < 50 {
			t.Errorf("the index has %q at %q with %d bytes", page.Title, page.URL, len(page.Text))
		}
	}
}
