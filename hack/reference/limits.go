package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"

	bounds "lockstep.run/lockstep/internal/limits"
)

// limits returns the page of limits: a table for each group of constants "Limits of …", with their
// comments. Comments that start with "internal: " are about limits that no user notices.
func limits(dir string) (string, error) {
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: dir}, ".")
	if err != nil {
		return "", err
	}
	if packages.PrintErrors(pkgs) > 0 {
		return "", fmt.Errorf("cannot load %s", dir)
	}

	files, info := pkgs[0].Syntax, pkgs[0].TypesInfo
	var b strings.Builder
	b.WriteString(header("Limits", "internal/limits"))
	b.WriteString("These limits protect the manager and other users. An error names the limit that was exceeded, with its value. They are constants of the code.\n")
	for _, file := range files {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			about, isLimit := strings.CutPrefix(raw(group.Doc), "Limits of ")
			if !isLimit { // workers and pauses, which no input reaches
				continue
			}
			var rows strings.Builder
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				why := value.Comment
				if why == nil {
					why = value.Doc
				}
				for _, name := range value.Names {
					if object, ok := info.Defs[name].(*types.Const); ok && name.IsExported() && !strings.HasPrefix(raw(why), "internal: ") {
						fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", name.Name, amount(object), cell(raw(why)))
					}
				}
			}
			if rows.Len() == 0 {
				continue
			}
			title, more, _ := strings.Cut(about, ". ")
			title = strings.TrimSuffix(title, ".")
			fmt.Fprintf(&b, "\n## %s\n\n", strings.ToUpper(title[:1])+title[1:])
			if more != "" {
				fmt.Fprintf(&b, "%s\n\n", more)
			}
			fmt.Fprintf(&b, "| Limit | Value | Applies to |\n|---|---:|---|\n%s", rows.String())
		}
	}

	b.WriteString(shares())
	return b.String(), nil
}

// shares returns the table of everything that namespaces share.
func shares() string {
	var b strings.Builder
	b.WriteString("\n## Resources that namespaces share\n\nIf a namespace has to wait, namespaces are served in turn. ClusterPackages can use the whole of a resource.\n\n| Resource | Total | One namespace | If exceeded |\n|---|---|---|---|\n")
	for _, s := range bounds.Shared() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cell(s.Of), cell(s.All), cell(s.One), cell(s.Full))
	}
	return b.String()
}

// amount formats the value of a limit for people.
func amount(c *types.Const) string {
	if c.Type().String() == "time.Duration" {
		n, _ := constant.Int64Val(c.Val())
		text := time.Duration(n).String()
		if rest, ok := strings.CutSuffix(text, "m0s"); ok {
			text = rest + "m"
		}
		return strings.TrimSuffix(text, "h0m") + map[bool]string{true: "h"}[strings.HasSuffix(text, "h0m")]
	}

	n, exact := constant.Int64Val(constant.ToInt(c.Val()))
	if !exact {
		return c.Val().String()
	}
	if !strings.Contains(c.Name(), "Bytes") {
		return grouped(n)
	}

	for _, unit := range []struct {
		name  string
		shift int
	}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if n >= 1<<unit.shift && n%(1<<unit.shift) == 0 {
			return grouped(n>>unit.shift) + " " + unit.name
		}
	}

	return grouped(n) + " bytes"
}

// grouped writes a number with commas.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
