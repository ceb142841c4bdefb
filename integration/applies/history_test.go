package applies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// history is a sequence of events for one object.
type history struct {
	kind *kind
	// origin creates the object before Lockstep adopts it, with a version; empty if Lockstep
	// itself creates it.
	origin  string
	version choice
	events  []event
	// strict includes values that the API server once chose as defaults.
	strict bool
}

// event is one of: a version is applied, the object is edited, the engine restarts.
type event struct {
	apply choice
	edit  *edit
	// restart ends the engine and starts it again.
	restart bool
}

// edit changes a dimension of the live object to another alternative, or scales it.
type edit struct {
	how       string
	dimension string
	to        int
	// away means that the engine does not run before the next event.
	away bool
}

var (
	origins = []string{"", "kubectl create", "kubectl apply", "kubectl apply --server-side", "helm"}
	edits   = []string{"edit", "patch", "set"}
)

// String returns the history as a script.
func (h *history) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", h.kind.name)
	if h.origin != "" {
		fmt.Fprintf(&b, "  %-10s %s\n", h.origin, h.describe(h.version))
	}
	for _, e := range h.events {
		switch {
		case e.restart:
			b.WriteString("  restart\n")
		case e.edit != nil:
			away := ""
			if e.edit.away {
				away = " (while the engine is away)"
			}
			fmt.Fprintf(&b, "  %-10s %s%s\n", e.edit.how, h.describeEdit(e.edit), away)
		default:
			fmt.Fprintf(&b, "  %-10s %s\n", "apply", h.describe(e.apply))
		}
	}
	return b.String()
}

func (h *history) describe(c choice) string {
	var parts []string
	for _, d := range h.kind.dimensions {
		if c[d.name] > 0 {
			parts = append(parts, oneLine(d.alternatives[c[d.name]]))
		}
	}
	if len(parts) == 0 {
		return "(the base)"
	}
	return strings.Join(parts, "; ")
}

func (h *history) describeEdit(e *edit) string {
	if e.how == "scale" {
		return fmt.Sprintf("--replicas=%d", e.to)
	}
	if text := oneLine(h.kind.dimension(e.dimension).alternatives[e.to]); text != "" {
		return text
	}
	return "without " + e.dimension
}

func oneLine(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ") }

// describeChoice names a choice.
func describeChoice(c choice) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if c[name] > 0 {
			fmt.Fprintf(&b, " %s=%d", name, c[name])
		}
	}
	return b.String()
}

func describe(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(raw) > 200 {
		return string(raw[:200]) + "…"
	}
	return string(raw)
}

// drawn returns a random history of a kind. Only a few dimensions vary in it, so that their changes
// affect each other.
func drawn(r *rand.Rand, k *kind) *history {
	focused := *k
	focused.dimensions = nil
	for _, i := range r.Perm(len(k.dimensions))[:1+r.IntN(min(4, len(k.dimensions)))] {
		focused.dimensions = append(focused.dimensions, k.dimensions[i])
	}
	d := &drawing{Rand: r, kind: &focused}
	h := &history{kind: k, version: choice{}}
	version := d.next(choice{})
	if r.IntN(2) == 0 {
		h.origin, h.version = origins[1+r.IntN(len(origins)-1)], version
		if r.IntN(2) == 0 {
			h.version = d.next(version)
		}
	}
	versions := []choice{version}
	h.events = append(h.events, event{apply: version})
	for range 2 {
		for range r.IntN(3) {
			h.events = append(h.events, event{edit: d.edit()})
		}
		if r.IntN(6) == 0 {
			h.events = append(h.events, event{restart: true})
		}
		version = d.next(version)
		if len(versions) > 1 && r.IntN(3) == 0 {
			version = versions[0]
		}
		versions = append(versions, version)
		h.events = append(h.events, event{apply: version})
	}
	return h
}

// drawing draws from the dimensions of a kind.
type drawing struct {
	*rand.Rand
	kind *kind
}

// next returns a version that differs from another one in some of the dimensions.
func (d *drawing) next(from choice) choice {
	version := maps.Clone(from)
	for i := range d.kind.dimensions {
		dimension := &d.kind.dimensions[i]
		if !dimension.byHand && d.IntN(3) > 0 {
			version[dimension.name] = d.IntN(len(dimension.alternatives))
		}
	}
	return version
}

func (d *drawing) edit() *edit {
	dimension := &d.kind.dimensions[d.IntN(len(d.kind.dimensions))]
	e := &edit{how: edits[d.IntN(len(edits))], dimension: dimension.name, to: d.IntN(len(dimension.alternatives)), away: d.IntN(3) == 0}
	if d.kind.scales() && d.IntN(5) == 0 {
		e.how, e.to = "scale", d.IntN(9)
	}
	return e
}

// scales reports whether kubectl scale works on the kind.
func (k *kind) scales() bool {
	return slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Strict"}, k.name)
}
