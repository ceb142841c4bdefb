package kickstart

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader"
)

// write makes a file of every object: <phase>/<name>.<kind>.yaml.
func (m *maker) write(files loader.Files, all []*object) error {
	for _, o := range all {
		o.annotate(corev1alpha1.PhaseAnnotation, o.phase)
		data, templated, err := encode(o.value)
		if err != nil {
			return fmt.Errorf("write %s: %w", o, err)
		}
		base := o.phase + "/" + o.fileBase()
		suffix := ".yaml"
		if templated {
			suffix += ".gotmpl"
		}
		p := base + suffix
		for i := 2; taken(files, p); i++ {
			p = base + "-" + strconv.Itoa(i) + suffix
		}
		files[p] = data
		m.ids[p] = o.id
	}
	return nil
}

// taken reports whether a file of that name exists, as a template or not: both are
// the same file once it is rendered.
func taken(files loader.Files, p string) bool {
	plain := strings.TrimSuffix(p, ".gotmpl")
	_, static := files[plain]
	_, template := files[plain+".gotmpl"]
	return static || template
}

// fileBase is <name>.<kind> as every file system takes it.
func (o *object) fileBase() string {
	name := o.fileName
	if name == "" {
		name = o.name()
	}
	const longest = 150
	clean := func(s string) string {
		s = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
				return r
			}
			return '-'
		}, strings.ToLower(s))
		return strings.Trim(s[:min(len(s), longest)], "-.")
	}
	base := clean(name)
	if base == "" {
		base = "object"
	}
	return base + "." + clean(o.gvk.Kind)
}

// encode writes a value as YAML, with the keys that people look for first. Where
// there is an expression in it, the result is a template.
func encode(v any) (data []byte, templated bool, err error) {
	e := encoder{token: "expression"}
	for contains(v, e.token) {
		e.token += "0"
	}
	node, err := e.node(v, "")
	if err != nil {
		return nil, false, err
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(node); err != nil {
		return nil, false, err
	}
	if err := enc.Close(); err != nil {
		return nil, false, err
	}
	if len(e.expressions) == 0 {
		return out.Bytes(), false, nil
	}
	text := strings.ReplaceAll(out.String(), "{{", `{{ "{{" }}`)
	for i := len(e.expressions) - 1; i >= 0; i-- {
		text = strings.ReplaceAll(text, e.name(i), "{{ "+string(e.expressions[i])+" | toJson }}")
	}
	return []byte(text), true, nil
}

type encoder struct {
	// token stands for expressions until the YAML is written; it occurs nowhere
	// in the value.
	token       string
	expressions []expression
}

func (e *encoder) name(i int) string { return e.token + "-" + strconv.Itoa(i) + "-" }

// contains reports whether a text occurs anywhere in a value.
func contains(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case map[string]any:
		for key, value := range v {
			if strings.Contains(key, text) || contains(value, text) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return contains(item, text) })
	}
	return false
}

func (e *encoder) node(v any, key string) (*yaml.Node, error) {
	switch v := v.(type) {
	case expression:
		e.expressions = append(e.expressions, v)
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: e.name(len(e.expressions) - 1)}, nil
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, name := range ordered(v, key) {
			k := &yaml.Node{}
			if err := k.Encode(name); err != nil {
				return nil, err
			}
			value, err := e.node(v[name], name)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, k, value)
		}
		return flow(n), nil
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			value, err := e.node(item, "")
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, value)
		}
		return flow(n), nil
	default:
		n := &yaml.Node{}
		return n, n.Encode(v)
	}
}

// flow writes what is empty as {} or [].
func flow(n *yaml.Node) *yaml.Node {
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

// first are the keys that stand before others, which are in alphabetical order.
var first = []string{"apiVersion", "group", "kind", "metadata", "rule", "name", "namespace", "labels", "annotations", "type", "image", "selector", "probes", "spec", "test"}

func ordered(m map[string]any, parent string) []string {
	keys := slices.Sorted(maps.Keys(m))
	if parent == "labels" || parent == "annotations" || parent == "properties" || parent == "data" {
		return keys
	}
	rank := func(key string) int {
		if i := slices.Index(first, key); i >= 0 {
			return i
		}
		if key == "default" {
			return len(first)
		}
		return len(first) + 1
	}
	slices.SortStableFunc(keys, func(a, b string) int { return rank(a) - rank(b) })
	return keys
}
