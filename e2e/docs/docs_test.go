package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// Every block of every page works as the page describes.
func TestPages(t *testing.T) {
	shared := harness.Shared(t)
	for _, page := range pages(t) {
		if filepath.Base(page) == lostNamespace {
			continue
		}
		t.Run(strings.TrimSuffix(strings.TrimPrefix(page, root+"/"), ".md"), func(t *testing.T) {
			t.Parallel() // each has namespaces of its own
			env := shared
			if filepath.Base(page) == moveIn {
				env = harness.Lend(t)
			}
			r := &runner{shell: newShell(t, env), page: page}
			for _, b := range blocks(t, page) {
				if !isHelms(t, b) {
					r.block(t, b)
				}
			}
			r.save(t)
			if len(r.transcript) > 0 {
				t.Logf("what the commands printed:\n%s", strings.Join(r.transcript, "\n"))
			}
		})
	}
}

// runner runs the blocks of one page.
type runner struct {
	*shell
	page       string
	transcript []string
	changes    []change
}

// change is a piece of a page that its output replaces.
type change struct {
	from, to int
	lines    []string
}

func (r *runner) block(t *testing.T, b block) {
	t.Helper()
	switch {
	case b.verb == "skip" && len(b.argument) >= 10:
		t.Logf("%s: left out: %s", b, b.argument)
	case b.language == "sh" || b.language == "console":
		r.commands(t, b)
	case b.verb == "file":
		r.file(t, b.argument, b.text)
	case b.verb == "manifest" || b.verb == "object":
		validate(t, b)
	case b.verb == "package":
		r.packageSpec(t, b)
	case b.verb == "apply":
		r.apply(t, b, b.text)
	case b.verb == "probe":
		probe(t, b)
	default:
		t.Errorf("%s: what is this %s for? No comment above it says so, or why it is left out", b, b.language)
	}
}

func (r *runner) commands(t *testing.T, b block) {
	t.Helper()
	steps := b.steps()
	if len(steps) == 0 {
		t.Errorf("%s: no line begins with $", b)
	}
	for i, s := range steps {
		got, code := r.run(t, s.command)
		r.transcript = append(r.transcript, "$ "+strings.TrimSpace(s.command))
		r.transcript = append(r.transcript, got...)
		want := 0
		if i == len(steps)-1 && b.verb == "exit" {
			want = 1
		}
		if code != want {
			t.Errorf("%s: %s ends with code %d:\n%s", b, s.command, code, strings.Join(got, "\n"))
			return
		}
		if !s.shown || matches(s.want, got) {
			continue
		}
		if r.update {
			r.changes = append(r.changes, change{from: s.end - len(s.want), to: s.end, lines: got})
			continue
		}
		t.Errorf("%s: %s prints\n%s\nand the page shows\n%s", b, s.command, strings.Join(got, "\n"), strings.Join(s.want, "\n"))
	}
}

// save writes the page with the outputs that differed.
func (r *runner) save(t *testing.T) {
	t.Helper()
	if len(r.changes) == 0 {
		return
	}
	data, err := os.ReadFile(r.page)
	require.NoError(t, err)
	lines := strings.Split(string(data), "\n")
	for _, c := range slices.Backward(r.changes) {
		lines = slices.Replace(lines, c.from, c.to, c.lines...)
	}
	require.NoError(t, os.WriteFile(r.page, []byte(strings.Join(lines, "\n")), 0o644))
}
