package document

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// joinPath renders a path for messages.
func joinPath(segments []segment) string {
	path := ""
	for _, s := range segments {
		if s.index >= 0 {
			path = Index(path, s.index)
		} else {
			path = Child(path, s.key)
		}
	}
	return path
}

// Child appends a key to a path, in brackets unless it is an identifier.
func Child(path, key string) string {
	switch {
	case key == "" || strings.IndexFunc(key, notIdentifier) >= 0:
		return path + "[" + key + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// Index appends an index to a path.
func Index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// notIdentifier reports whether a character needs brackets in a path.
func notIdentifier(r rune) bool {
	return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// Line returns the line of a field, or of the nearest enclosing field that exists.
func (d *Document) Line(path string) int {
	n, line := d.root, d.root.Line
	for _, segment := range splitPath(path) {
		child, childLine := step(n, segment)
		if child == nil {
			break
		}
		n, line = child, childLine
	}
	return d.line + line
}

// Raw returns the text of a scalar as written in the file.
func (d *Document) Raw(path string) (string, bool) {
	n := d.root
	for _, segment := range splitPath(path) {
		if n, _ = step(n, segment); n == nil {
			return "", false
		}
	}
	n = aliased(n)
	return n.Value, n.Kind == yaml.ScalarNode
}

// aliased follows aliases to their value.
func aliased(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// step returns the child at a segment of a path, and the line of its key or item.
func step(n *yaml.Node, segment string) (child *yaml.Node, line int) {
	switch n = aliased(n); n.Kind {
	case yaml.MappingNode:
		// Search backwards, because the last duplicate key wins.
		for i := len(n.Content) - 2; i >= 0; i -= 2 {
			if n.Content[i].Value == segment {
				return n.Content[i+1], n.Content[i].Line
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(segment); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i].Line
		}
	}

	return nil, 0
}

// splitPath splits paths such as spec.phases[2].name and metadata.labels[example.com/x].
func splitPath(path string) []string {
	var out []string
	for path != "" {
		if path[0] == '[' {
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return append(out, path[1:])
			}
			out = append(out, path[1:end])
			path = path[end+1:]
			continue
		}
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(out, path)
		}
		if end > 0 {
			out = append(out, path[:end])
		}
		path = path[end:]
	}

	return out
}
