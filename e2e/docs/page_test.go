package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/require"
)

const (
	root   = "../../docs"
	folder = root + "/packages"
)

// moveIn is the page that needs no manager, and lostNamespace the page that TestLostNamespace runs.
const (
	moveIn        = "migrate-from-package-operator.md"
	lostNamespace = "lost-namespace.md"
)

// block is one block of code.
type block struct {
	page     string
	language string
	text     string
	// verb and argument come from the comment above it.
	verb, argument string
	// first and last are the lines of its text, counted from 0; first > last if it is empty.
	first, last int
}

func (b block) String() string { return fmt.Sprintf("%s:%d", filepath.Base(b.page), b.first) }

// before is a command that the page does not show, because readers already have its result.
var before = regexp.MustCompile(`^\s*<!-- before: (.*) -->$`)

var comment = regexp.MustCompile(`^\s*<!-- ([a-z]+)(?:: (.*))? -->$`)

// pages returns the pages, in the order of their names.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, section := range []string{"packages", "start", "administrate"} {
		of, err := filepath.Glob(root + "/" + section + "/*.md")
		if err != nil || len(of) == 0 {
			t.Fatalf("no pages in %s: %v", section, err)
		}
		all = append(all, of...)
	}
	return append(all, root+"/catalogue.md", root+"/dependencies.md", root+"/reference/probes.md", root+"/"+helmGuide, root+"/"+moveIn)
}

// blocks returns the blocks of a page that are code.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	var out []block
	var open *block
	indent, above := "", ""
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			open = &block{page: page, language: language, first: i + 1}
			indent = line[:strings.Index(line, "```")]
			if m := comment.FindStringSubmatch(above); m != nil {
				open.verb, open.argument = m[1], m[2]
			}
		case fence:
			open.last = i - 1
			var text []string
			for _, l := range lines[open.first:i] {
				text = append(text, strings.TrimPrefix(l, indent))
			}
			open.text = strings.Join(text, "\n") + "\n"
			if open.language != "" && open.language != "text" {
				out = append(out, *open)
			}
			open = nil
		}
		if m := before.FindStringSubmatch(line); m != nil && open == nil {
			out = append(out, block{page: page, language: "sh", text: m[1] + "\n", first: i, last: i})
		}
		above = line
	}
	if open != nil {
		t.Fatalf("%s: the block is not closed", open)
	}
	return out
}

// step is one command and the output on the page; nil if the page shows none.
type step struct {
	command string
	want    []string
	shown   bool
	// at is the line of the command in the page, and end the line after its output.
	at, end int
}

// steps takes a block apart.
func (b block) steps() []step {
	var out []step
	lines := strings.Split(strings.TrimSuffix(b.text, "\n"), "\n")
	if b.language == "sh" {
		return []step{{command: b.text, at: b.first, end: b.last + 1}}
	}
	for i := 0; i < len(lines); i++ {
		text, ok := strings.CutPrefix(lines[i], "$ ")
		if !ok {
			if len(out) == 0 {
				return nil
			}
			last := &out[len(out)-1]
			last.want = append(last.want, lines[i])
			last.end = b.first + i + 1
			continue
		}
		s := step{command: text, shown: true, at: b.first + i}
		for strings.HasSuffix(s.command, `\`) && i+1 < len(lines) {
			i++
			s.command += "\n" + lines[i]
		}
		s.end = b.first + i + 1
		out = append(out, s)
	}
	return out
}
