package graph

import (
	"fmt"
	"strings"

	"lockstep.run/lockstep/internal/cli/terminal"
)

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
