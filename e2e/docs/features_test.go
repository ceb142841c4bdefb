package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown is a package and the tests in it that a row names.
var shown = regexp.MustCompile("`([a-z0-9/]+)` ((?:(?:Test|Fuzz)[A-Za-z0-9_/]+(?:, )?)+)")

// Every row of the table of features names a test, and each of them exists.
func TestFeatures(t *testing.T) {
	data, err := os.ReadFile(folder + "/features.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(data), "## Not there")
	rows, tests := 0, 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| Shown by |\n") {
			continue
		}
		rows++
		found := shown.FindAllStringSubmatch(line, -1)
		if len(found) == 0 {
			t.Errorf("no test shows: %s", line)
		}
		for _, m := range found {
			have := testsOf(t, filepath.Join("../..", m[1]))
			for _, name := range strings.Split(strings.TrimSuffix(m[2], ", "), ", ") {
				top, _, _ := strings.Cut(name, "/")
				if !have[top] {
					t.Errorf("%s has no %s", m[1], name)
				}
				tests++
			}
		}
	}
	if rows < 50 || tests < rows {
		t.Errorf("%d rows with %d tests: the table is not read as it is written", rows, tests)
	}
	t.Logf("%d features, shown by %d tests", rows, tests)
}

// testsOf returns the names of the tests of a package.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(dir + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				out[fn.Name.Name] = true
			}
		}
	}
	return out
}
