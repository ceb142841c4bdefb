package limits_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// Everything that several tenants wait for, or evict each other from, is in the table with its
// bound for one namespace.
func TestSharedIsBounded(t *testing.T) {
	t.Parallel()
	listed, found, files := map[string]bool{}, map[string]bool{}, 0
	for _, share := range limits.Shared() {
		if share.Of == "" || share.All == "" || share.One == "" {
			t.Errorf("%q lacks something", share.Of)
		}
		for _, made := range share.Made {
			listed[made] = true
		}
	}
	for _, room := range []string{"engine", "controllers", "loader", "inputs", "manager", "cluster", "catalog"} {
		err := filepath.WalkDir(filepath.Join("..", room), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for name, at := range shared(file) {
				made := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../") + "." + name
				if found[made] = true; !listed[made] {
					t.Errorf("%s: %s is shared by all namespaces: bound it for each, by queueing.Semaphore, and add it to limits.Shared", set.Position(at), made)
				}
			}
			return nil
		})
		require.NoError(t, err)
	}
	for made := range listed {
		if !found[made] {
			t.Errorf("%s is not in the code any more", made)
		}
	}
	if files < 100 {
		t.Errorf("only %d files were found", files)
	}
}

func TestShared(t *testing.T) {
	t.Parallel()
	const text = `package a

var cache = map[string]int{}
var table = map[string]int{"a": 1}
var seen sync.Map
var lazy map[string]bool
var builtIn = map[string]bool{}

func init() { builtIn["a"] = true }

func New() *T {
	t := &T{
		wake: make(chan struct{}, 1), places: make(chan struct{}, 4), all: semaphore.NewWeighted(3), kept: lru.NewLRUExpireCache(7),
		hosts: queueing.Keyed{Most: 3}, local: map[string]int{},
	}
	t.pulls = queueing.NewSemaphore(2, 1)
	group.SetLimit(3)
	return t
}

func account() *queueing.Semaphore { return queueing.NewSemaphore(2, 1) }
`
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", text, parser.SkipObjectResolution)
	require.NoError(t, err)
	var names []string
	for name := range shared(file) {
		names = append(names, name)
	}
	slices.Sort(names)
	require.Equal(t, []string{"account", "all", "cache", "hosts", "kept", "lazy", "places", "pulls", "seen"}, names)
}

// shared returns the resources in a file that all namespaces share, by the names of their fields,
// variables or functions.
func shared(file *ast.File) map[string]token.Pos {
	found := map[string]token.Pos{}
	for _, decl := range file.Decls {
		name := ""
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name = decl.Name.Name
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok && decl.Tok == token.VAR && isFilled(value) {
					found[value.Names[0].Name] = value.Pos()
				}
			}
		}
		sharedIn(decl, name, found)
	}
	for _, decl := range file.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok && function.Name.Name == "init" { // a table, which stays as it is from then on
			ast.Inspect(function, func(node ast.Node) bool {
				if assigned, ok := node.(*ast.IndexExpr); ok {
					delete(found, nameOf(assigned.X, ""))
				}
				return true
			})
		}
	}
	return found
}

// isFilled reports whether a variable of a package is a map that is filled later.
func isFilled(value *ast.ValueSpec) bool {
	if len(value.Values) == 0 {
		_, isMap := value.Type.(*ast.MapType)
		of, isOther := value.Type.(*ast.SelectorExpr)
		return isMap || isOther && of.Sel.Name == "Map"
	}
	switch made := value.Values[0].(type) {
	case *ast.CompositeLit:
		_, isMap := made.Type.(*ast.MapType)
		return isMap && len(made.Elts) == 0
	case *ast.CallExpr:
		if len(made.Args) == 0 {
			return false
		}
		_, isMap := made.Args[0].(*ast.MapType)
		return isMap
	}
	return false
}

// sharedIn adds the semaphores and caches that are made in a node for a name.
func sharedIn(in ast.Node, name string, found map[string]token.Pos) {
	ast.Inspect(in, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.KeyValueExpr:
			if key, ok := node.Key.(*ast.Ident); ok {
				sharedIn(node.Value, key.Name, found)
				return false
			}
		case *ast.AssignStmt:
			for i, value := range node.Rhs {
				to := name
				if i < len(node.Lhs) {
					to = nameOf(node.Lhs[i], name)
				}
				sharedIn(value, to, found)
			}
			return false
		case *ast.CompositeLit:
			if of, ok := node.Type.(*ast.SelectorExpr); ok && of.Sel.Name == "Keyed" {
				found[name] = node.Pos()
			}
		case *ast.CallExpr:
			if makesShared(node) {
				found[name] = node.Pos()
			}
		}
		return true
	})
}

func nameOf(of ast.Expr, otherwise string) string {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.SelectorExpr:
		return of.Sel.Name
	}
	return otherwise
}

var makers = []string{"NewSemaphore", "NewStages", "NewRequests", "NewWeighted", "NewLRUExpireCache"}

// makesShared reports whether a call makes a semaphore or a cache. A channel of one place is a
// signal.
func makesShared(call *ast.CallExpr) bool {
	switch function := call.Fun.(type) {
	case *ast.SelectorExpr:
		return slices.Contains(makers, function.Sel.Name)
	case *ast.IndexExpr:
		of, ok := function.X.(*ast.SelectorExpr)
		return ok && slices.Contains(makers, of.Sel.Name)
	case *ast.Ident:
		if function.Name != "make" || len(call.Args) != 2 {
			return false
		}
		of, isChannel := call.Args[0].(*ast.ChanType)
		if !isChannel {
			return false
		}
		_, isSignal := of.Value.(*ast.StructType)
		size, isNumber := call.Args[1].(*ast.BasicLit)
		return isSignal && !(isNumber && size.Value == "1")
	}
	return false
}
