// Package docs_test checks the tables of the documentation that name tests.
package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/test/require"
)

// proven are the pages whose tables name a test in each row, up to the heading, with their least
// number of rows.
var proven = map[string]struct {
	until string
	rows  int
}{
	"design/features.md":         {"## Not there", 50},
	"development/invariants.md":  {"", 110},
	"design/package-operator.md": {"", 80},
}

// word is text in backquotes, or a test, with the rows that are meant: TestX/a for rows whose names
// start with a, or TestX "a", "b".
var word = regexp.MustCompile("`([^`]*)`|\\b((?:Test|Fuzz)[A-Z][A-Za-z0-9_]*)(/[A-Za-z0-9._-]+)?((?: \"[^\"]*\",?)*)")

var folder = regexp.MustCompile(`^[a-z][a-z0-9/]*$`)

// Each test that a table of the documentation names exists in the package that the table names
// before it, along with its rows and subtests.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	packages := map[string]*tests{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		checkPage(t, path, string(text), packages)
		return nil
	})
	require.NoError(t, err)
}

func checkPage(t *testing.T, path, text string, packages map[string]*tests) {
	t.Helper()
	rule, isProven := proven[filepath.ToSlash(path)]
	lines, rows, until := strings.Split(text, "\n"), 0, isProven
	for i, line := range lines {
		until = until && (rule.until == "" || line != rule.until)
		if !strings.HasPrefix(line, "| ") || i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|--") {
			continue
		}
		rows++
		if n := checkRow(t, path+":"+strconv.Itoa(i+1), line, packages); n == 0 && until {
			t.Errorf("%s:%d names no test: %s", path, i+1, line)
		}
	}
	if isProven && rows < rule.rows {
		t.Errorf("%s has %d rows: they are not read as they are written", path, rows)
	}
}

// checkRow returns how many tests a row names.
func checkRow(t *testing.T, at, line string, packages map[string]*tests) int {
	t.Helper()
	n, dir := 0, ""
	for _, m := range word.FindAllStringSubmatch(line, -1) {
		name := m[2]
		if name == "" {
			if packages[m[1]] == nil && folder.MatchString(m[1]) {
				packages[m[1]] = testsOf(t, m[1])
			}
			if packages[m[1]] != nil {
				dir = m[1]
			}
			continue
		}
		n++
		in := packages[dir]
		if in == nil || !in.names[name] {
			t.Errorf("%s: %s is not a test of %q", at, name, dir)
			continue
		}
		if begin := strings.TrimPrefix(m[3], "/"); !in.has(func(text string) bool { return strings.HasPrefix(text, begin) }) {
			t.Errorf("%s: %s of %s has no row %q", at, name, dir, begin)
		}
		for i, row := range strings.Split(m[4], `"`) {
			if i%2 == 1 && !in.has(func(text string) bool { return text == row }) {
				t.Errorf("%s: %s of %s has no row %q", at, name, dir, row)
			}
		}
	}
	return n
}

// tests are the tests of a package. Texts are the possible names of rows: the literals of its
// tests, and the files in testdata.
type tests struct {
	names map[string]bool
	texts []string
}

func (s *tests) has(is func(string) bool) bool { return slices.ContainsFunc(s.texts, is) }

// testsOf reads the tests of a package, by its path from the root. It returns nil if there are
// none.
func testsOf(t *testing.T, dir string) *tests {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		return nil
	}
	all := &tests{names: map[string]bool{}}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				all.names[n.Name.Name] = all.names[n.Name.Name] || n.Recv == nil
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					all.texts = append(all.texts, text)
				}
			}
			return true
		})
	}
	data, err := filepath.Glob(filepath.Join("..", dir, "testdata", "*"))
	require.NoError(t, err)
	for _, path := range data {
		base := filepath.Base(path)
		all.texts = append(all.texts, strings.TrimSuffix(base, filepath.Ext(base)))
	}
	return all
}

// Every alert has a runbook that starts with a command, and reads only documented metrics.
func TestAlerts(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../config/monitoring/rules.yaml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	require.NoError(t, yaml.UnmarshalStrict(content, &file))
	page, err := os.ReadFile("alerts.md")
	require.NoError(t, err)
	metrics, err := os.ReadFile("metrics.md")
	require.NoError(t, err)
	alerts, states := map[string]bool{}, map[string]bool{}
	for _, rule := range file.Groups[0].Rules {
		alerts[rule.Alert] = true
		require.Contains(t, string(page), "\n## "+rule.Alert+"\n\n```sh\nkubectl ", fmt.Sprintf("alerts.md has no section %s that starts with a command", rule.Alert))
		if want := "docs/alerts.md#" + strings.ToLower(rule.Alert); rule.Annotations["runbook"] != want || rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
			t.Errorf("%s has %v and %v, want a severity, a summary and the runbook %s", rule.Alert, rule.Labels, rule.Annotations, want)
		}
		for _, words := range regexp.MustCompile(`last_over_time\(lockstep_package_summary\{summary=~"([^"]*)"`).FindAllStringSubmatch(rule.Expr, -1) {
			for word := range strings.SplitSeq(words[1], "|") {
				states[word] = true
			}
		}
		for _, name := range regexp.MustCompile(`(lockstep|package_operator)_\w+`).FindAllString(rule.Expr, -1) {
			require.Contains(t, string(metrics), "| `"+name+"` |", fmt.Sprintf("%s reads %s, which metrics.md does not list", rule.Alert, name))
		}
	}
	for _, word := range summary.All() {
		wanted := word != summary.Available && word != summary.Paused && word != summary.Awaiting
		require.Equal(t, wanted, states[string(word)], fmt.Sprintf("an alert of packages that are %s", word))
	}
	for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(page), -1) {
		if !alerts[heading[1]] {
			t.Errorf("alerts.md has %s, which is not an alert", heading[1])
		}
	}
}

const (
	taskWords = 600    // of a page of one task, which administrators read under pressure
	allWords  = 28_000 // of all handwritten pages for users, without the output of commands
	cellWords = 25     // of a cell in the table of invariants: more than one promise
)

// designWords bounds the pages for contributors, by the start of their paths.
var designWords = map[string]int{"design/": 10_000, "development.md": 1_000, "development/tests": 1_000, "development/invariants": 2_600}

// inserted is the part of a page that a test generates from the code. hidden is invisible to
// readers, such as commands that e2e/docs runs first.
var (
	inserted = regexp.MustCompile(`(?s)<!-- functions -->.*?<!-- /functions -->`)
	hidden   = regexp.MustCompile(`(?s)<!--.*?-->`)
)

// printed are blocks of commands with their output, which e2e/docs compares, and writes with
// LOCKSTEP_UPDATE=1.
var printed = regexp.MustCompile("(?ms)^ *```console\n.*?^ *```$")

// withoutOutput returns a page of those that e2e/docs runs, without the output of commands.
func withoutOutput(page string) string {
	return printed.ReplaceAllStringFunc(page, func(block string) string {
		var kept []string
		goesOn := false
		for line := range strings.Lines(block) {
			text := strings.TrimSpace(line)
			if goesOn || strings.HasPrefix(text, "$ ") || strings.HasPrefix(text, "```") {
				kept = append(kept, line)
				goesOn = strings.HasSuffix(text, `\`)
			}
		}
		return strings.Join(kept, "")
	})
}

// Pages of tasks are short and have the parts that a reader looks for, and text written by hand is
// bounded.
func TestPagesAreShort(t *testing.T) {
	t.Parallel()
	sum := 0
	for _, page := range markdown(t) {
		path := strings.TrimPrefix(filepath.ToSlash(page), "../docs/")
		if strings.HasPrefix(path, "..") && path != "../README.md" || isDesign(path) {
			continue
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		if strings.Contains(string(text), "<!-- Generated by") {
			continue
		}
		page := hidden.ReplaceAllString(inserted.ReplaceAllString(string(text), ""), "")
		words := len(strings.Fields(page))
		sum += len(strings.Fields(withoutOutput(page)))
		t.Logf("%5d %s", words, path)
		folder, _, _ := strings.Cut(path, "/")
		if folder != "administrate" && folder != "start" {
			continue
		}
		if words > taskWords {
			t.Errorf("%s has %d words; more than %d are two tasks", path, words, taskWords)
		}
		if folder == "start" {
			continue
		}
		for _, part := range []string{"\n**When:** ", "\n## When it goes wrong\n", "\n## The way back\n"} {
			if !strings.Contains(string(text), part) && !slices.Contains(without[part], path) {
				t.Errorf("%s has no %q", path, strings.TrimSpace(part))
			}
		}
	}
	if sum > allWords {
		t.Errorf("pages for users have %d words, more than %d: leave out, or generate", sum, allWords)
	}
	t.Logf("%5d in all", sum)
}

// Pages for contributors are short, and a cell of the invariants is one sentence, or the tests for
// it.
func TestDesignIsShort(t *testing.T) {
	t.Parallel()
	sums := map[string]int{}
	for _, page := range markdown(t) {
		path := strings.TrimPrefix(filepath.ToSlash(page), "../docs/")
		if !isDesign(path) {
			continue
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for begin := range designWords {
			if strings.HasPrefix(path, begin) {
				sums[begin] += len(strings.Fields(string(text)))
			}
		}
		if path != "development/invariants.md" {
			continue
		}
		for line := range strings.Lines(string(text)) {
			for cell := range strings.SplitSeq(strings.Trim(line, "|\n"), "|") {
				if n := len(strings.Fields(cell)); strings.HasPrefix(line, "|") && n > cellWords {
					t.Errorf("%s has a cell of %d words: %s", path, n, cell)
				}
			}
		}
	}
	for begin, most := range designWords {
		if sums[begin] == 0 || sums[begin] > most {
			t.Errorf("%s has %d words, at most %d are allowed", begin, sums[begin], most)
		}
	}
}

// without are pages that lack a part, because their tasks cannot be undone.
var without = map[string][]string{"\n## The way back\n": {"administrate/secrets.md", "administrate/registries.md"}}

// isDesign reports whether a page is for those who change Lockstep.
func isDesign(path string) bool {
	return strings.HasPrefix(path, "design/") || strings.HasPrefix(path, "development")
}
