package threeway

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"lockstep.run/lockstep/internal/loader/document"
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
		keepComments(theirs, ours)
	}
	return theirs
}

func keepComments(to, from *yaml.Node) {
	to.HeadComment, to.LineComment, to.FootComment = from.HeadComment, from.LineComment, from.FootComment
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
	order := keys(ours)
	at := 0
	for _, key := range keys(theirs) {
		if i := slices.Index(order, key); i >= 0 {
			at = i + 1
			continue
		}
		order = slices.Insert(order, at, key)
		at++
	}
	out := *ours
	out.Content = nil
	for _, key := range order {
		_, b := entry(base, key)
		name, o := entry(ours, key)
		other, t := entry(theirs, key)
		v := m.value(document.Child(path, key), b, o, t)
		if name == nil {
			name = other
		}
		if v != nil {
			out.Content = append(out.Content, name, v)
		}
	}
	if len(out.Content) > 0 && len(ours.Content) == 0 {
		out.Style = 0
	}
	return &out
}

// itemKeys are the keys of list items in Kubernetes and in manifests; the first that
// fits all lists is used.
var itemKeys = [][]string{
	{"name"}, {"selector"}, {"containerPort", "protocol"}, {"port", "protocol"}, {"mountPath"}, {"devicePath"}, {"key", "operator"}, {"key"}, {"topologyKey"}, {"ip"},
}

// named returns the keys of the items of each list; nil if they are not unique.
func named(lists ...*yaml.Node) [][]string {
	for _, fields := range itemKeys {
		var all [][]string
		for _, list := range lists {
			if names := itemNames(list, fields); names != nil {
				all = append(all, names)
			}
		}
		if len(all) == len(lists) {
			return all
		}
	}
	return nil
}

func itemNames(list *yaml.Node, fields []string) []string {
	names := []string{}
	for _, item := range list.Content {
		name := ""
		for i, field := range fields {
			_, v := entry(item, field)
			if v == nil && i == 0 {
				return nil
			}
			if v != nil {
				name += "," + field + "=" + show(v)
			}
		}
		if slices.Contains(names, name) {
			return nil
		}
		names = append(names, name)
	}
	return names
}

func (m *merger) list(path string, base, ours, theirs *yaml.Node) *yaml.Node {
	out := *ours
	if names := named(base, ours, theirs); names != nil {
		out.Content = m.items(path, [3]*yaml.Node{base, ours, theirs}, names)
	} else {
		out.Content = m.sequence(path, base, ours, theirs)
	}
	if len(out.Content) > 0 && len(ours.Content) == 0 {
		out.Style = 0
	}
	return &out
}

// items merges lists whose items have keys, in an order with the changes of both sides.
func (m *merger) items(path string, lists [3]*yaml.Node, names [][]string) []*yaml.Node {
	find := func(side int, name string) *yaml.Node {
		if i := slices.Index(names[side], name); i >= 0 {
			return lists[side].Content[i]
		}
		return nil
	}
	var order []string
	add := func(list []string) {
		for _, name := range list {
			if !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
	}
	for _, r := range regions(names[0], names[1], names[2]) {
		mine, other := names[1][r.ours.from:r.ours.to], names[2][r.theirs.from:r.theirs.to]
		if r.oursChanged || !r.theirChanged {
			add(mine)
		}
		if r.theirChanged {
			add(other)
		}
	}
	add(names[0])
	add(names[1])
	var out []*yaml.Node
	for _, name := range order {
		if v := m.value(path+"["+strings.TrimPrefix(name, ",")+"]", find(0, name), find(1, name), find(2, name)); v != nil {
			out = append(out, v)
		}
	}
	m.changed = m.changed || !slices.Equal(out, lists[1].Content)
	return out
}

// sequence merges lists without keys like lines.
func (m *merger) sequence(path string, base, ours, theirs *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for _, r := range regions(shown(base), shown(ours), shown(theirs)) {
		was, mine, other := base.Content[r.base.from:r.base.to], ours.Content[r.ours.from:r.ours.to], theirs.Content[r.theirs.from:r.theirs.to]
		field := document.Index(path, r.ours.from)
		switch {
		case !r.theirChanged || slices.EqualFunc(mine, other, same):
			out = append(out, mine...)
		case !r.oursChanged || m.prefer == Theirs:
			m.changed = true
			out = append(out, other...)
		case len(was) == len(mine) && len(mine) == len(other):
			for i := range mine {
				out = append(out, m.value(document.Index(path, r.ours.from+i), was[i], mine[i], other[i]))
			}
		default:
			out = append(out, mine...)
			if m.prefer == Neither {
				m.conflicts = append(m.conflicts, Conflict{Field: field, Base: showAll(was), Ours: showAll(mine), Theirs: showAll(other)})
			}
		}
	}
	return out
}

func shown(list *yaml.Node) []string {
	out := make([]string, len(list.Content))
	for i, item := range list.Content {
		out[i] = canonical(item)
	}
	return out
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
	switch n.Kind {
	case yaml.MappingNode:
		names := keys(n)
		slices.Sort(names)
		parts := make([]string, len(names))
		for i, name := range names {
			_, v := entry(n, name)
			parts[i] = strconv.Quote(name) + ":" + canonical(v)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case yaml.SequenceNode:
		return "[" + strings.Join(shown(n), ",") + "]"
	}
	if n.ShortTag() == "!!str" {
		return strconv.Quote(n.Value)
	}
	return n.Value
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
