package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var (
	// goName matches a Go constant in a comment.
	goName = regexp.MustCompile(`\b(Condition|Reason)([A-Z]\w*)\b`)
	// first matches the start of comments on reasons.
	first = regexp.MustCompile(`^(Condition|Reason)\w+ (is that |is )`)
)

// conditions returns the page of conditions and reasons: a table for each group of constants of the
// files.
func conditions(folder string) (string, error) {
	decls, comments, err := read(folder)
	if err != nil {
		return "", err
	}

	values := map[string]string{}
	for _, decl := range decls {
		maps.Copy(values, named(decl))
	}

	var b strings.Builder
	b.WriteString(header("Conditions and reasons", "apis/core/v1alpha1 and hack/reference/kinds.yaml"))
	b.WriteString("A condition describes the current spec only if its `observedGeneration` equals `metadata.generation`. [Messages](messages.md) has the remedies, and [concepts](../concepts.md#availability-during-an-upgrade) describes `Available` during an upgrade. `Invalid` also has the reasons of `Unpacked`.\n")
	tables, err := byKind(values, comments)
	if err != nil {
		return "", err
	}

	b.WriteString(tables)
	for _, decl := range decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST || group.Doc == nil {
			continue
		}
		title, more, _ := strings.Cut(text(group.Doc, values), ". ")
		fmt.Fprintf(&b, "\n## %s\n", strings.NewReplacer("`", "", ".", "").Replace(title))
		if more = strings.TrimSpace(more); more != "" {
			fmt.Fprintf(&b, "\n%s\n", more)
		}
		column := "Condition"
		if strings.HasPrefix(title, "Reasons") {
			column = "Reason"
		}
		fmt.Fprintf(&b, "\n| %s | Meaning |\n|---|---|\n", column)
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			meaning := first.ReplaceAllStringFunc(raw(value.Doc), func(begin string) string {
				if strings.HasSuffix(begin, " is that ") {
					return ""
				}
				return begin[strings.Index(begin, " ")+1:]
			})
			fmt.Fprintf(&b, "| `%s` | %s |\n", values[value.Names[0].Name], cell(replaceNames(meaning, values)))
		}
	}

	return b.String(), nil
}

// read returns the declarations and comments of the files with conditions and reasons.
func read(folder string) (decls []ast.Decl, comments string, err error) {
	reasons, err := filepath.Glob(filepath.Join(folder, "reasons_*.go"))
	if err != nil {
		return nil, "", err
	}

	for _, path := range append([]string{filepath.Join(folder, "conditions.go")}, reasons...) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, "", err
		}
		decls = append(decls, file.Decls...)
		for _, group := range file.Comments {
			comments += group.Text()
		}
	}

	return decls, comments, nil
}

// named returns the constants of a declaration by their names.
func named(decl ast.Decl) map[string]string {
	out := map[string]string{}
	group, ok := decl.(*ast.GenDecl)
	if !ok || group.Tok != token.CONST {
		return nil
	}
	for _, spec := range group.Specs {
		value := spec.(*ast.ValueSpec)
		if literal, ok := value.Values[0].(*ast.BasicLit); ok {
			out[value.Names[0].Name], _ = strconv.Unquote(literal.Value)
		}
	}
	return out
}

func text(doc *ast.CommentGroup, values map[string]string) string {
	return replaceNames(raw(doc), values)
}

// raw returns a comment on one line.
func raw(doc *ast.CommentGroup) string { return strings.Join(strings.Fields(doc.Text()), " ") }

// replaceNames replaces the names of constants with their values.
func replaceNames(text string, values map[string]string) string {
	return goName.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := values[name]; ok {
			return "`" + value + "`"
		}
		return name
	})
}

// cell returns text for a cell of a table.
func cell(text string) string {
	return strings.TrimSuffix(strings.ReplaceAll(text, "|", `\|`), ".")
}
