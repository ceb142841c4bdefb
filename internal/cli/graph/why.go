package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
)

const (
	// MostPaths is the number of paths that Why returns.
	MostPaths = 50
	// mostSteps bounds the search for them.
	mostSteps = 10_000
)

// Reasons is why a package is installed. Its JSON fields are stable.
type Reasons struct {
	*Node
	// Paths lead from packages that users installed to this one.
	Paths [][]Step `json:"paths"`
	// More means that there are more than MostPaths.
	More bool `json:"more,omitempty"`
	// InstalledFor is what a generated package was installed for that nothing depends on, by its labels.
	InstalledFor *Key `json:"installedFor,omitempty"`
	// Remedy is a command that deletes what nothing needs.
	Remedy string `json:"remedy,omitempty"`

	installedForGone bool
}

// Step is a package on a path, and its dependency that leads to the next one.
type Step struct {
	Key
	Generated  bool   `json:"generated"`
	Dependency string `json:"dependency"`
	// Wants is what it requires, such as "db.example.com >=1".
	Wants string `json:"wants"`
}

// Why finds why a package is installed.
func (g *Graph) Why(n *Node) Reasons {
	w := &walk{graph: g, on: map[Key]bool{n.Key: true}, reasons: Reasons{Node: n, Paths: [][]Step{}}}
	w.up(n, nil)
	r := w.reasons
	slices.SortStableFunc(r.Paths, func(a, b []Step) int { return len(a) - len(b) })
	if n.Generated && len(n.Dependents) == 0 {
		r.Remedy = "kubectl package delete " + n.Target().Flags()
		if parent, ok := parentOf(n); ok {
			r.InstalledFor, r.installedForGone = &parent, g.byKey[parent] == nil
		}
	}
	return r
}

// parentOf returns what a generated package was installed for, by its labels.
func parentOf(n *Node) (Key, bool) {
	labels := n.pkg.GetLabels()
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		if name, is := strings.CutPrefix(label, corev1alpha1.RequiredByLabelPrefix); is {
			return KeyFor(labels[label], name), true
		}
	}
	return Key{}, false
}

type walk struct {
	graph   *Graph
	on      map[Key]bool
	steps   int
	reasons Reasons
}

// up collects the paths that end in below.
func (w *walk) up(n *Node, below []Step) {
	for _, key := range n.Dependents {
		if w.on[key] {
			continue
		}
		if w.steps++; w.steps > mostSteps || len(w.reasons.Paths) >= MostPaths {
			w.reasons.More = true
			return
		}
		dependent := w.graph.byKey[key]
		for _, e := range dependent.Dependencies {
			if e.To == nil || *e.To != n.Key {
				continue
			}
			path := append([]Step{{Key: key, Generated: dependent.Generated, Dependency: e.Name, Wants: e.wants()}}, below...)
			if !dependent.Generated || len(dependent.Dependents) == 0 {
				w.reasons.Paths = append(w.reasons.Paths, path)
			}
			w.on[key] = true
			w.up(dependent, path)
			delete(w.on, key)
		}
	}
}

// mostNamed is the number of packages that one line names.
const mostNamed = 10

// Names joins the names of packages.
func Names(keys []Key) string {
	var names []string
	for _, k := range keys[:min(len(keys), mostNamed)] {
		names = append(names, k.String())
	}
	if more := len(keys) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// Text is the reasons for people.
func (r Reasons) Text(styles terminal.Styles) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(fmt.Sprintf(format, args...) + "\n") }
	name := styles.Strong(terminal.Line(r.Key.String()))
	if what := strings.TrimSpace(r.Package + " " + r.Version); what != "" {
		name += "  " + terminal.Line(what)
	}
	how := "installed by a user"
	if r.Generated {
		how = "generated: installed for what depends on it"
	}
	line("%s: %s", name, how)
	switch {
	case r.InstalledFor != nil && r.installedForGone:
		line("Nothing needs it; it was installed for %s, which is gone: %s", terminal.Line(r.InstalledFor.String()), terminal.Line(r.Remedy))
	case r.InstalledFor != nil:
		line("Nothing needs it; it was installed for %s, which needs it no more: %s", terminal.Line(r.InstalledFor.String()), terminal.Line(r.Remedy))
	case r.Remedy != "":
		line("Nothing needs it: %s", terminal.Line(r.Remedy))
	case len(r.Paths) == 0 && len(r.Dependents) == 0:
		line("No package depends on it.")
	case len(r.Paths) == 0:
		line("Only packages depend on it that nothing else needs: %s", terminal.Line(Names(r.Dependents)))
	default:
		line("It is needed by:")
	}
	for _, path := range r.Paths {
		var steps []string
		for _, s := range path {
			by := ""
			if s.Generated {
				by = " (generated)"
			}
			steps = append(steps, fmt.Sprintf("%s%s → %s (%s)", s.Key, by, s.Dependency, s.Wants))
		}
		line("  %s", terminal.Line(strings.Join(steps, " → ")))
	}
	if r.More {
		line("  … and more")
	}
	return b.String()
}
