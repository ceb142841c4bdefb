package threeway

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"lockstep.run/lockstep/internal/loader/document"
)

// Side decides conflicts.
type Side string

// Sides.
const (
	// Neither reports them.
	Neither Side = ""
	Ours    Side = "ours"
	Theirs  Side = "theirs"
)

// Conflict is a value that both sides changed differently.
type Conflict struct {
	// Field, or the line in ours.
	Field string
	// Base, Ours and Theirs are the shortened values, or None.
	Base, Ours, Theirs string
}

// None stands for a missing value.
const None = "nothing"

// Merge merges the changes of both sides. An empty base means that both added the text.
// Conflicts that prefer decides are not returned.
func Merge(base, ours, theirs []byte, prefer Side) ([]byte, []Conflict) {
	switch {
	case bytes.Equal(base, theirs) || bytes.Equal(ours, theirs):
		return ours, nil
	case bytes.Equal(base, ours):
		return theirs, nil
	}
	b, o, t := parse(base), parse(ours), parse(theirs)
	if o == nil || t == nil || b == nil && len(base) > 0 {
		return mergeLines(base, ours, theirs, prefer)
	}
	m := merger{prefer: prefer}
	merged := m.value("", content(b), content(o), content(t))
	if len(m.conflicts) > 0 || !m.changed {
		return ours, m.conflicts
	}
	o.Content[0] = merged
	out, err := Encode(o)
	if err != nil {
		return mergeLines(base, ours, theirs, prefer)
	}
	return out, nil
}

// Same reports whether two texts are equal, as YAML if they can be parsed.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := parse(a), parse(b)
	return x != nil && y != nil && same(content(x), content(y))
}

func content(document *yaml.Node) *yaml.Node {
	if document == nil {
		return nil
	}
	return document.Content[0]
}

// parse returns a document, or nil if it cannot be merged field by field: a template,
// several documents, or one with aliases.
func parse(text []byte) *yaml.Node {
	if bytes.Contains(text, []byte("{{")) {
		return nil
	}
	documents := 0
	problems := document.Each("", text, func(*document.Document) { documents++ })
	if len(problems) > 0 || documents != 1 {
		return nil
	}
	var root yaml.Node
	if yaml.Unmarshal(text, &root) != nil || root.Kind != yaml.DocumentNode || len(root.Content) != 1 || !plain(root.Content[0]) {
		return nil
	}
	return &root
}

// plain reports whether a value has no anchors, aliases and merge keys.
func plain(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Tag == "!!merge" {
		return false
	}
	return !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !plain(c) })
}

// Encode formats YAML in the style of kubectl.
func Encode(n *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(n); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

// mergeLines merges texts by their lines.
func mergeLines(base, ours, theirs []byte, prefer Side) ([]byte, []Conflict) {
	var conflicts []Conflict
	line := func(text string) string { return text }
	out := mergeLists(lines(base), lines(ours), lines(theirs), line, func(r region, was, mine, other []string) []string {
		if !r.oursChanged || prefer == Theirs {
			return other
		}
		if prefer == Neither {
			conflicts = append(conflicts, Conflict{
				Field: fmt.Sprintf("line %d", r.ours.from+1), Base: brief(strings.Join(was, "")), Ours: brief(strings.Join(mine, "")), Theirs: brief(strings.Join(other, "")),
			})
		}
		return mine
	})
	if len(conflicts) > 0 {
		return ours, conflicts
	}
	return []byte(strings.Join(out, "")), nil
}

func lines(text []byte) []string { return slices.Collect(strings.Lines(string(text))) }

// brief shortens a value to what fits into a message.
func brief(text string) string {
	const longest = 80
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return None
	}
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return text
}
