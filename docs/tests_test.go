// Package docs_test checks the tables of the documentation that name tests.
package docs_test

import (
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
