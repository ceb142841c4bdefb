package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"lockstep.run/lockstep/test/require"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	anchor  = regexp.MustCompile(`<a id="([^"]+)">`)
	// target is the address of a link in a heading, which is not part of its anchor.
	target = regexp.MustCompile(`\]\([^)]*\)`)
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	span   = regexp.MustCompile("`[^`\n]*`")
)

// Every link from a page to a file or folder of the repository leads to one that exists, and its
// fragment to a heading there.
func TestLinks(t *testing.T) {
	t.Parallel()
	anchors := map[string]map[string]bool{}
	count := 0
	for _, page := range markdown(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		prose := span.ReplaceAllString(fenced.ReplaceAllString(string(text), ""), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			path, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") || strings.HasPrefix(path, "mailto:") {
				continue
			}
			count++
			to := page
			if path != "" {
				to = filepath.Join(filepath.Dir(page), filepath.FromSlash(path))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
				continue
			}
			if fragment == "" || filepath.Ext(to) != ".md" {
				continue
			}
			if anchors[to] == nil {
				anchors[to] = anchorsOf(t, to)
			}
			if !anchors[to][fragment] {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
	if count < 300 {
		t.Errorf("%d links are checked: they are not read as they are written", count)
	}
}

// markdown returns the pages of the repository, except in testdata and in folders whose name starts
// with a dot.
func markdown(t *testing.T) (pages []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "dist"):
			return fs.SkipDir
		case filepath.Ext(name) == ".md" && !entry.IsDir():
			pages = append(pages, path)
		}
		return nil
	})
	require.NoError(t, err)
	return pages
}

// anchorsOf returns the anchors of a page: those that GitHub gives its headings, and its own.
func anchorsOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	out := map[string]bool{}
	for _, m := range anchor.FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = true
	}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
		out[slug(m[1])] = true
	}
	return out
}

func slug(title string) string {
	title = target.ReplaceAllString(title, "]")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"Install the engine": "install-the-engine", "`ui`": "ui", "pause, unpause": "pause-unpause", "Reverse (2-6)": "reverse-2-6",
		"See [this](other.md#part) page": "see-this-page", "API group: v1alpha1": "api-group-v1alpha1",
	} {
		require.Equal(t, want, slug(title), fmt.Sprintf("the anchor of %q", title))
	}
}
