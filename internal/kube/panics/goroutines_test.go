package panics_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/require"
)

// Every goroutine of the manager starts with a recover: it is started by this package, or its
// function calls Guard first. The same applies to functions that a controller calls on a goroutine
// of an informer.
func TestGoroutinesAreGuarded(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, room := range rooms(t) {
		err := filepath.WalkDir(filepath.Join("..", "..", room), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "panics") {
				return err
			}
			checked++
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, at := range unguarded(file) {
				t.Errorf("%s: a panic on this goroutine would end the process: start it by panics.Go, panics.After or a panics.Group", files.Position(at))
			}
			return nil
		})
		require.NoError(t, err)
	}
	if checked < 100 {
		t.Errorf("only %d files were found", checked)
	}
}

// rooms are the folders of the manager: all except the command line and its page.
func rooms(t *testing.T) []string {
	entries, err := os.ReadDir(filepath.Join("..", ".."))
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); name != "cli" && name != "ui" {
			names = append(names, name)
		}
	}
	return names
}

func TestUnguarded(t *testing.T) {
	t.Parallel()
	const text = `package a

import "golang.org/x/sync/errgroup"

func f() {
	go g()
	waits.Go(func() { g() })
	waits.Go(func() { _ = panics.Guard(ctx, "", g) })
	panics.Go(ctx, "", g)
	group.Go(g)
	handler.EnqueueRequestsFromMapFunc(keys)
	handler.EnqueueRequestsFromMapFunc(func() { _ = panics.Guard(ctx, "", keys) })
	time.AfterFunc(d, g)
	panics.After(d, "", g)
}
`
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "a.go", text, parser.SkipObjectResolution)
	require.NoError(t, err)
	var lines []int
	for _, at := range unguarded(file) {
		lines = append(lines, files.Position(at).Line)
	}
	if want := []int{3, 6, 7, 11, 13}; !slices.Equal(lines, want) {
		t.Errorf("found in lines %v, want %v", lines, want)
	}
}

// unguarded returns where a file starts a goroutine without a recover, or could by an errgroup.
func unguarded(file *ast.File) (found []token.Pos) {
	for _, imported := range file.Imports {
		if imported.Path.Value == `"golang.org/x/sync/errgroup"` {
			found = append(found, imported.Pos())
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			found = append(found, node.Pos())
		case *ast.CallExpr:
			if called, ok := node.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Go" && !named(called.X, "panics") && !named(called.X, "group") && !guards(node) {
				found = append(found, node.Pos())
			} else if ok && named(called.X, "time") && called.Sel.Name == "AfterFunc" {
				found = append(found, node.Pos())
			} else if ok && strings.HasSuffix(called.Sel.Name, "EnqueueRequestsFromMapFunc") && !guards(node) {
				found = append(found, node.Pos())
			}
		}
		return true
	})
	return found
}

func named(expression ast.Expr, name string) bool {
	ident, ok := expression.(*ast.Ident)
	return ok && ident.Name == name
}

// guards reports whether the function of a call starts with panics.Guard.
func guards(call *ast.CallExpr) bool {
	if len(call.Args) != 1 {
		return false
	}
	function, ok := call.Args[0].(*ast.FuncLit)
	if !ok || len(function.Body.List) == 0 {
		return false
	}
	first, found := function.Body.List[0], false
	ast.Inspect(first, func(node ast.Node) bool {
		if called, ok := node.(*ast.SelectorExpr); ok && called.Sel.Name == "Guard" && named(called.X, "panics") {
			found = true
		}
		return !found
	})
	return found
}
