package document

import (
	"encoding/base64"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

// segment is one step of a path: a key if index is -1, otherwise an index.
type segment struct {
	key   string
	index int
}

// atKey returns the segment of a key.
func atKey(key string) segment { return segment{key, -1} }

// converter turns the nodes of one document into JSON values. It counts expanded aliases, so a
// small document cannot become a large value. active are the aliases that are being expanded.
type converter struct {
	doc   *Document
	nodes int
	text  int
	path  []segment
	// pathBytes is the total length of the keys in path.
	pathBytes                  int
	active                     map[*yaml.Node]bool
	problems, warnings, doubts violation.Violations
	stopped                    bool
}

// fail adds a problem, and ends the conversion once there are more than are shown.
func (c *converter) fail(n *yaml.Node, reason violation.Reason, remedy, format string, args ...any) {
	c.stopped = c.stopped || len(c.problems) >= limits.Violations
	c.problems = append(c.problems, c.at(n, reason).Because(remedy, format, args...))
}

// at returns a violation at a node and the present path.
func (c *converter) at(n *yaml.Node, reason violation.Reason, below ...segment) violation.Violation {
	return violation.Violation{
		Reason: reason, Path: c.doc.Path, Document: c.doc.Index, Line: c.doc.line + n.Line, Field: joinPath(append(c.path, below...)),
	}
}

// doubt adds input that only Package Operator accepts.
func (c *converter) doubt(v violation.Violation) {
	if len(c.doubts) <= limits.Violations {
		c.doubts = append(c.doubts, v)
	}
}

// stop reports a limit and ends the conversion.
func (c *converter) stop(n *yaml.Node, format string, args ...any) {
	if !c.stopped {
		c.stopped = true
		c.fail(n, violation.ReasonLimit, "", format, args...)
	}
}

// value converts a node. Aliases count as a level, because a chain of them recurses as well.
func (c *converter) value(n *yaml.Node, depth int) any {
	if c.stopped {
		return nil
	}

	c.nodes++
	if c.nodes > limits.DocumentNodes {
		c.stop(n, "the document has more than %d values, aliases expanded", limits.DocumentNodes)
		return nil
	}
	if depth > limits.DocumentDepth {
		c.stop(n, "the document nests deeper than %d levels", limits.DocumentDepth)
		return nil
	}

	switch n.Kind {
	case yaml.AliasNode:
		if c.active[n.Alias] {
			c.stop(n, "the alias *%s is inside the value it refers to", n.Value)
			return nil
		}
		c.active[n.Alias] = true
		defer delete(c.active, n.Alias)
		return c.value(n.Alias, depth+1)
	case yaml.MappingNode:
		return c.mapping(n, depth)
	case yaml.SequenceNode:
		return c.sequence(n, depth)
	default:
		return c.scalar(n)
	}
}

// sequence converts a list. A wrong tag is a doubt; the list is converted anyway.
func (c *converter) sequence(n *yaml.Node, depth int) any {
	if n.Tag != "!!seq" {
		c.badTag(n)
	}
	out := make([]any, 0, len(n.Content))
	for i, item := range n.Content {
		c.path = append(c.path, segment{"", i})
		out = append(out, c.value(item, depth+1))
		c.path = c.path[:len(c.path)-1]
	}
	return out
}

// mapping converts a mapping. If a key is duplicate, the last one wins, as for kubectl.
func (c *converter) mapping(n *yaml.Node, depth int) any {
	if n.Tag != "!!map" {
		c.badTag(n)
	}

	out := make(map[string]any, len(n.Content)/2)
	var lines map[string]int
	for i := 0; i+1 < len(n.Content) && !c.stopped; i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag == "!!merge" && k.Style == 0 {
			c.merge(out, v, depth)
			continue
		}
		key, ok := c.key(k)
		if !ok {
			continue
		}
		if _, twice := lines[key]; twice {
			c.doubt(c.at(k, violation.ReasonInvalidYAML, atKey(key)).Because("Remove one of them.", "the key stands twice, first in line %d", c.doc.line+lines[key]))
		}
		if lines == nil {
			lines = make(map[string]int, len(n.Content)/2)
		}
		lines[key] = k.Line
		if c.pathBytes+len(key) > limits.DocumentPathBytes {
			c.stop(k, "the keys that lead to a field have more than %d bytes together", limits.DocumentPathBytes)
			break
		}
		c.path, c.pathBytes = append(c.path, atKey(key)), c.pathBytes+len(key)
		out[key] = c.value(v, depth+1)
		c.path, c.pathBytes = c.path[:len(c.path)-1], c.pathBytes-len(key)
	}

	return out
}

// merge adds the mappings of a "<<" key. The first one wins. As in Kubernetes, they override keys
// before it.
func (c *converter) merge(out map[string]any, n *yaml.Node, depth int) {
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}

	for _, source := range slices.Backward(sources) {
		m, ok := c.value(source, depth+1).(map[string]any)
		if c.stopped {
			return
		}
		if !ok {
			c.fail(n, violation.ReasonInvalidYAML, "", "<< has to name a mapping or a list of mappings")
			return
		}
		maps.Copy(out, m)
	}
}

// key returns a key as text. Scalars become the text that Kubernetes' JSON has for them: floats
// have the precision of 32 bits there, too.
func (c *converter) key(n *yaml.Node) (string, bool) {
	target := n
	if n.Kind == yaml.AliasNode {
		target = n.Alias
	}
	if target.Kind != yaml.ScalarNode {
		c.fail(n, violation.ReasonInvalidYAML, "Use text as the key. A file with {{ … }} of templates needs a name that ends with .gotmpl.", "a key is a list or a mapping")
		return "", false
	}

	before := len(c.problems)
	switch v := c.scalar(target).(type) {
	case string:
		return v, len(c.problems) == before
	case bool:
		text := strconv.FormatBool(v)
		if !strings.EqualFold(target.Value, text) {
			c.warnings = append(c.warnings, c.at(n, violation.ReasonInvalidYAML, atKey(text)).
				Because("Put the key in quotes.", "the key %s is a boolean in YAML 1.1; it is read as %s", target.Value, text))
		}
		return text, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 32), true
	default:
		if len(c.problems) == before {
			c.fail(n, violation.ReasonInvalidYAML, "Put the key in quotes.", "a key is null")
		}
		return "", false
	}
}

// badTag reports a tag without a meaning in JSON.
func (c *converter) badTag(n *yaml.Node) {
	c.doubt(c.at(n, violation.ReasonInvalidYAML).Because("Remove the tag.", "the tag %s is not supported", n.Tag))
}

// scalar converts text by the tag that the parser resolved for it.
func (c *converter) scalar(n *yaml.Node) any {
	c.text += len(n.Value)
	if c.text > limits.DocumentTextBytes {
		c.stop(n, "the document has more than %d bytes of text, aliases expanded", limits.DocumentTextBytes)
		return nil
	}

	switch n.Tag {
	case "!!str":
		if b, ok := legacyBool(n); ok {
			return b
		}
		return n.Value
	// JSON has neither, so the text stays as written.
	case "!!timestamp", "!!merge":
		return n.Value
	case "!!null":
		return nil
	case "!!bool":
		if b, ok := boolWords[strings.ToLower(n.Value)]; ok {
			return b
		}
	case "!!int":
		if v, ok := parseInt(n.Value); ok {
			return v
		}
	case "!!float":
		if v, ok := parseFloat(n.Value); ok {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				c.fail(n, violation.ReasonInvalidYAML, "", "%s has no form in JSON", n.Value)
				return nil
			}
			return v
		}
	case "!!binary":
		text := strings.Join(strings.Fields(n.Value), "")
		if v, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(v) {
			return string(v)
		}
	default:
		c.badTag(n)
		return n.Value
	}

	c.fail(n, violation.ReasonInvalidYAML, "", "the value is not a valid %s", strings.TrimPrefix(n.Tag, "!!"))
	return nil
}

// boolWords are the booleans of YAML 1.1.
var boolWords = map[string]bool{
	"true": true, "yes": true, "on": true, "y": true,
	"false": false, "no": false, "off": false, "n": false,
}

// legacyBool parses plain words such as yes and off, which the parser leaves as text.
func legacyBool(n *yaml.Node) (value, ok bool) {
	if n.Style != 0 || len(n.Value) > 5 {
		return false, false
	}
	lower := strings.ToLower(n.Value)
	if value, ok = boolWords[lower]; !ok {
		return false, false
	}
	title := strings.ToUpper(lower[:1]) + lower[1:]
	return value, n.Value == lower || n.Value == title || n.Value == strings.ToUpper(lower)
}

// parseInt parses the integers of YAML 1.1 and 1.2. Beyond int64 they become floats, as in
// Kubernetes' JSON.
func parseInt(s string) (any, bool) {
	s = strings.ReplaceAll(s, "_", "")
	if v, err := strconv.ParseInt(s, 0, 64); err == nil {
		return v, true
	}
	if v, err := strconv.ParseUint(s, 0, 64); err == nil {
		return float64(v), true
	}
	return nil, false
}

// parseFloat parses a float of YAML, including infinity and NaN, which the caller refuses.
func parseFloat(s string) (float64, bool) {
	switch strings.ToLower(s) {
	case ".nan":
		return math.NaN(), true
	case ".inf", "+.inf":
		return math.Inf(1), true
	case "-.inf":
		return math.Inf(-1), true
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return v, err == nil
}
