package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// Marks of nodes that are not drawn again.
const (
	markAbove = "(above)"
	markCycle = "(cycle)"
)

// Tree draws nodes as trees. A node that no other one depends on is a root, with its dependencies
// below it. A node that was already drawn is marked, and drawn without its dependencies.
func (g *Graph) Tree(nodes []*Node, styles terminal.Styles) string {
	d := &drawing{graph: g, styles: styles, drawn: map[Key]bool{}, above: map[Key]bool{}}
	shown := map[Key]bool{}
	for _, n := range nodes {
		shown[n.Key] = true
	}

	for _, n := range nodes {
		if !slices.ContainsFunc(n.Dependents, func(k Key) bool { return shown[k] }) {
			d.root(n)
		}
	}

	for _, n := range nodes { // nodes that only a cycle leads to
		if !d.drawn[n.Key] {
			d.root(n)
		}
	}

	return d.text.String()
}

// TreeOf draws one package and its dependencies.
func (g *Graph) TreeOf(n *Node, styles terminal.Styles) string {
	d := &drawing{graph: g, styles: styles, drawn: map[Key]bool{}, above: map[Key]bool{}}
	d.root(n)
	return d.text.String()
}

// drawing is a text of trees.
type drawing struct {
	graph  *Graph
	styles terminal.Styles
	text   strings.Builder
	// drawn nodes, and the nodes above the current one.
	drawn, above map[Key]bool
}

// line adds a line of parts, without empty ones.
func (d *drawing) line(parts ...string) {
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	d.text.WriteString(strings.Join(parts, "  ") + "\n")
}

// root draws a node as the root of a tree.
func (d *drawing) root(n *Node) {
	d.line(append([]string{d.styles.Strong(terminal.Line(n.Key.String()))}, d.about(n)...)...)
	d.below(n, "")
}

// about returns the texts after the name of a node.
func (d *drawing) about(n *Node) []string {
	about := []string{terminal.Line(strings.TrimSpace(n.Package + " " + n.Version)), progress.StateText(n.Summary, d.styles)}
	if n.Generated {
		about = append(about, d.styles.Faint("generated"))
	}
	return about
}

// below draws the dependencies of a node.
func (d *drawing) below(n *Node, stem string) {
	d.drawn[n.Key], d.above[n.Key] = true, true
	defer delete(d.above, n.Key)
	for i, e := range n.Dependencies {
		branch, further := "├── ", "│   "
		if i == len(n.Dependencies)-1 {
			branch, further = "└── ", "    "
		}
		d.edge(e, stem+branch, stem+further)
	}
}

// node is the package installed for a dependency; nil if it was not read.
func (d *drawing) node(e Edge) *Node {
	if e.To == nil {
		return nil
	}
	return d.graph.byKey[*e.To]
}

// edge draws a dependency, and the package installed for it unless it was drawn before.
func (d *drawing) edge(e Edge, branch, further string) {
	name := terminal.Line(e.Name) + ":"
	what := e.wants()
	// The name of the package is known from its node, so the range suffices.
	if n := d.node(e); n != nil && e.Package != "" && n.Package == e.Package {
		what = cmp.Or(e.Range, "any version")
	}
	wants := "needs " + terminal.Line(what)
	if e.Optional {
		wants += ", optional"
	}

	wants = d.styles.Faint(wants)
	problem := ""
	if !e.Satisfied {
		problem = d.styles.Bad(terminal.Line(strings.TrimSuffix(e.Reason+": "+e.Message, ": ")))
		if e.Reason == "" {
			problem = d.styles.Busy("not looked at yet")
		}
	}

	if e.To == nil {
		if e.Satisfied {
			problem = d.styles.Good("served")
		}
		d.line(branch+name, wants, problem)
		return
	}

	head := branch + name + " " + terminal.Line(e.To.String())
	n := d.node(e)
	switch {
	case n == nil:
		d.line(head, terminal.Line(e.Version), wants, d.styles.Faint("cannot be read, or no longer exists"), problem)
	case d.above[n.Key]:
		d.line(head, d.styles.Bad(markCycle), wants, problem)
	case d.drawn[n.Key]:
		d.line(head, d.styles.Faint(markAbove), wants, problem)
	default:
		d.line(append(append([]string{head}, d.about(n)...), wants, problem)...)
		d.below(n, further)
	}
}

// Reasons explain why a package is installed. Its JSON fields are stable.
type Reasons struct {
	*Node
	// NeededBy are the dependents, each with its dependency that leads to this one.
	NeededBy []Need `json:"neededBy"`
	// Remedy is a command that deletes unneeded packages.
	Remedy string `json:"remedy,omitempty"`
}

// Need is a package that depends on another one.
type Need struct {
	Key
	Generated  bool   `json:"generated"`
	Dependency string `json:"dependency"`
	// Wants is the requirement, such as "db.example.com >=1".
	Wants string `json:"wants"`
}

// Why finds why a package is installed.
func (g *Graph) Why(n *Node) Reasons {
	r := Reasons{Node: n, NeededBy: []Need{}}
	for _, key := range n.Dependents {
		dependent := g.byKey[key]
		for _, e := range dependent.Dependencies {
			if e.To != nil && *e.To == n.Key {
				r.NeededBy = append(r.NeededBy, Need{Key: key, Generated: dependent.Generated, Dependency: e.Name, Wants: e.wants()})
			}
		}
	}

	if n.Generated && len(n.Dependents) == 0 {
		r.Remedy = "kubectl package delete " + n.Target().Flags()
	}

	return r
}

// Text prints the reasons for people.
func (r Reasons) Text(styles terminal.Styles) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(fmt.Sprintf(format, args...) + "\n") }
	name := styles.Strong(terminal.Line(r.Key.String()))
	if what := strings.TrimSpace(r.Package + " " + r.Version); what != "" {
		name += "  " + terminal.Line(what)
	}
	how := "installed by a user"
	if r.Generated {
		how = "generated: installed for its dependents"
	}

	line("%s: %s", name, how)
	switch {
	case r.Remedy != "":
		line("No package needs it: %s", terminal.Line(r.Remedy))
	case len(r.NeededBy) == 0:
		line("No package depends on it.")
	default:
		line("It is needed by:")
	}

	for _, n := range r.NeededBy {
		by := ""
		if n.Generated {
			by = " (generated)"
		}
		line("  %s", terminal.Line(fmt.Sprintf("%s%s → %s (%s)", n.Key, by, n.Dependency, n.Wants)))
	}

	return b.String()
}
