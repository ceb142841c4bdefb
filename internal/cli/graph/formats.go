package graph

import (
	"fmt"
	"strings"

	"lockstep.run/lockstep/internal/cli/terminal"
)

// Formats of drawings that other programs make.
const (
	FormatDOT     = "dot"
	FormatMermaid = "mermaid"
)

// drawn are nodes with an identifier each; those that were not read have one, too.
type drawn struct {
	nodes []*Node
	ids   map[Key]string
	keys  []Key
}

func drawnOf(nodes []*Node) drawn {
	d := drawn{nodes: nodes, ids: map[Key]string{}}
	add := func(k Key) {
		if d.ids[k] == "" {
			d.ids[k] = fmt.Sprintf("n%d", len(d.keys))
			d.keys = append(d.keys, k)
		}
	}
	for _, n := range nodes {
		add(n.Key)
	}
	for _, n := range nodes {
		for _, e := range n.Dependencies {
			if e.To != nil {
				add(*e.To)
			}
		}
	}
	return d
}

// each calls use for each dependency that something is installed for.
func (d drawn) each(use func(from, to string, e Edge)) {
	for _, n := range d.nodes {
		for _, e := range n.Dependencies {
			if e.To != nil {
				use(d.ids[n.Key], d.ids[*e.To], e)
			}
		}
	}
}

// label is the text in the box of a package: its name, its version, its state.
func (g *Graph) label(k Key, lineBreak string, escape func(string) string) string {
	parts := []string{escape(k.String())}
	if n := g.byKey[k]; n == nil {
		parts = append(parts, "not read, or gone")
	} else {
		if what := strings.TrimSpace(n.Package + " " + n.Version); what != "" {
			parts = append(parts, escape(what))
		}
		parts = append(parts, n.Summary.Words())
	}
	return strings.Join(parts, lineBreak)
}

// DOT draws nodes as Graphviz reads it.
func (g *Graph) DOT(nodes []*Node) string {
	escape := func(text string) string {
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(terminal.Line(text))
	}
	d := drawnOf(nodes)
	var b strings.Builder
	b.WriteString("digraph packages {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=sans];\n")
	for _, k := range d.keys {
		fmt.Fprintf(&b, "  %s [label=\"%s\"];\n", d.ids[k], g.label(k, `\n`, escape))
	}
	d.each(func(from, to string, e Edge) {
		style := ""
		if !e.Satisfied {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  %s -> %s [label=\"%s\"%s];\n", from, to, escape(e.label()), style)
	})
	b.WriteString("}\n")
	return b.String()
}

// Mermaid draws nodes as Mermaid reads it.
func (g *Graph) Mermaid(nodes []*Node) string {
	escape := func(text string) string {
		// Mermaid has entities, and reads Markdown and HTML in labels.
		var b strings.Builder
		for _, r := range terminal.Line(text) {
			if strings.ContainsRune("\"#&;<>`*_[](){}|\\", r) {
				fmt.Fprintf(&b, "#%d;", r)
				continue
			}
			b.WriteRune(r)
		}
		return b.String()
	}
	d := drawnOf(nodes)
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for _, k := range d.keys {
		fmt.Fprintf(&b, "  %s[\"%s\"]\n", d.ids[k], g.label(k, "<br>", escape))
	}
	d.each(func(from, to string, e Edge) {
		arrow := "-->"
		if !e.Satisfied {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  %s %s|\"%s\"| %s\n", from, arrow, escape(e.label()), to)
	})
	return b.String()
}

func (e Edge) label() string {
	if e.Optional {
		return e.Name + ": " + e.wants() + ", optional"
	}
	return e.Name + ": " + e.wants()
}
