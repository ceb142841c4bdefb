package threeway

import (
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/objects/listkeys"
)

// merger is one merge of values.
type merger struct {
	prefer    Side
	conflicts []Conflict
	// changed is set if the result differs from ours.
	changed bool
}

// value merges one value; nil is none.
func (m *merger) value(path string, base, ours, theirs *yaml.Node) *yaml.Node {
	switch {
	case same(base, theirs), same(ours, theirs):
		return ours
	case ours == nil || theirs == nil || base == nil && ours.Kind != yaml.MappingNode:
	// Merged even if ours is unchanged, to keep its comments.
	case ours.Kind == yaml.MappingNode && theirs.Kind == yaml.MappingNode:
		return m.mapping(path, base, ours, theirs)
	case ours.Kind == yaml.SequenceNode && theirs.Kind == yaml.SequenceNode && base.Kind == yaml.SequenceNode:
		return m.list(path, base, ours, theirs)
	}
	switch {
	case same(base, ours) || m.prefer == Theirs:
		return m.replace(ours, theirs)
	case m.prefer == Neither:
		m.conflicts = append(m.conflicts, Conflict{Field: path, Base: show(base), Ours: show(ours), Theirs: show(theirs)})
	}
	return ours
}

// replace returns theirs with the comments of ours.
func (m *merger) replace(ours, theirs *yaml.Node) *yaml.Node {
	m.changed = true
	if ours != nil && theirs != nil {
		theirs.HeadComment, theirs.LineComment, theirs.FootComment = ours.HeadComment, ours.LineComment, ours.FootComment
	}
	return theirs
}

// entry returns the key and the value of a field; nil if there is none.
func entry(n *yaml.Node, key string) (k, v *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

func keys(n *yaml.Node) []string {
	var out []string
	if n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			out = append(out, n.Content[i].Value)
		}
	}
	return out
}

// mapping merges fields; new ones of theirs keep their predecessor.
func (m *merger) mapping(path string, base, ours, theirs *yaml.Node) *yaml.Node {
	order, at := keys(ours), 0
	for _, key := range keys(theirs) {
		i := slices.Index(order, key)
		if i < 0 {
			i = at
			order = slices.Insert(order, i, key)
		}
		at = i + 1
	}
	var content []*yaml.Node
	for _, key := range order {
		_, b := entry(base, key)
		name, o := entry(ours, key)
		other, t := entry(theirs, key)
		if name == nil {
			name = other
		}
		if v := m.value(document.Child(path, key), b, o, t); v != nil {
			content = append(content, name, v)
		}
	}
	return filled(ours, content)
}

// filled returns a mapping or list with other content.
func filled(n *yaml.Node, content []*yaml.Node) *yaml.Node {
	out := *n
	if out.Content = content; len(content) > 0 && len(n.Content) == 0 {
		out.Style = 0
	}
	return &out
}

// named returns the names of the items of each list; ok is false if they have none.
func named(lists [3]*yaml.Node) (names [][]string, ok bool) {
	var decoded [3][]any
	for i, list := range lists {
		if list.Decode(&decoded[i]) != nil {
			return nil, false
		}
	}
	return listkeys.IdentifyForMerge(decoded[:]...)
}

func (m *merger) list(path string, base, ours, theirs *yaml.Node) *yaml.Node {
	lists := [3]*yaml.Node{base, ours, theirs}
	if names, ok := named(lists); ok {
		return filled(ours, m.items(path, lists, names))
	}
	return filled(ours, m.sequence(path, base, ours, theirs))
}

// items merges lists whose items have keys, in an order with the changes of both sides.
func (m *merger) items(path string, lists [3]*yaml.Node, names [][]string) (out []*yaml.Node) {
	var order []string
	for _, r := range regions(names[0], names[1], names[2]) {
		if r.oursChanged || !r.theirChanged {
			order = append(order, cut(names[1], r.ours)...)
		}
		if r.theirChanged {
			order = append(order, cut(names[2], r.theirs)...)
		}
	}
	added := map[string]bool{}
	for _, name := range slices.Concat(order, names[0], names[1]) {
		if added[name] {
			continue
		}
		added[name] = true
		var sides [3]*yaml.Node
		for side, list := range lists {
			if i := slices.Index(names[side], name); i >= 0 {
				sides[side] = list.Content[i]
			}
		}
		if v := m.value(path+"["+brief(name)+"]", sides[0], sides[1], sides[2]); v != nil {
			out = append(out, v)
		}
	}
	m.changed = m.changed || !slices.Equal(out, lists[1].Content)
	return out
}

// sequence merges lists without keys like lines.
func (m *merger) sequence(path string, base, ours, theirs *yaml.Node) []*yaml.Node {
	return mergeLists(base.Content, ours.Content, theirs.Content, canonical, func(r region, was, mine, other []*yaml.Node) []*yaml.Node {
		switch {
		case !r.oursChanged || m.prefer == Theirs:
			m.changed = true
			return other
		case len(was) == len(mine) && len(mine) == len(other):
			var merged []*yaml.Node
			for i := range mine {
				merged = append(merged, m.value(document.Index(path, r.ours.from+i), was[i], mine[i], other[i]))
			}
			return merged
		case m.prefer == Neither:
			m.conflicts = append(m.conflicts, Conflict{Field: document.Index(path, r.ours.from), Base: showAll(was), Ours: showAll(mine), Theirs: showAll(other)})
		}
		return mine
	})
}

// same reports whether two values are equal.
func same(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return canonical(a) == canonical(b)
}

// canonical returns the same text for equal values.
func canonical(n *yaml.Node) string {
	var v any
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if n.Decode(&v) != nil || encoder.Encode(v) != nil {
		return n.Value
	}
	return strings.TrimSpace(out.String())
}

// show formats a value for messages.
func show(n *yaml.Node) string {
	switch {
	case n == nil:
		return None
	case n.Kind == yaml.ScalarNode && n.Value != "":
		return brief(n.Value)
	}
	return brief(canonical(n))
}

func showAll(list []*yaml.Node) string {
	return show(&yaml.Node{Kind: yaml.SequenceNode, Content: list})
}
