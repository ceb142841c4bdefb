package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

// target is one fuzz target.
type target struct {
	// Package is its folder, relative to the root of the module.
	Package string
	Name    string
	// Code are the files that it is for, from the line "Code:" of its comment.
	Code []string
}

// discover returns the fuzz targets below root, in the order of their files.
func discover(root string, match *regexp.Regexp) ([]target, error) {
	var out []target
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || path != root && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		found, err := parse(path)
		for _, t := range found {
			if match.MatchString(t.Name) {
				out = append(out, t)
			}
		}
		return err
	})
	return out, err
}

func parse(path string) ([]target, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []target
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Fuzz") {
			continue
		}
		out = append(out, target{Package: filepath.ToSlash(filepath.Dir(path)), Name: fn.Name.Name, Code: codeOf(fn.Doc.Text())})
	}
	return out, nil
}

// codeOf reads the line "Code: a.go, b.go" of a comment, which may be wrapped.
func codeOf(doc string) []string {
	_, rest, ok := strings.Cut(doc, "\nCode: ")
	if !ok {
		return nil
	}
	return strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
}
