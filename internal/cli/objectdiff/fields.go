package objectdiff

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/limits"
)

// Change is one field that differs.
type Change struct {
	// Path of the field, such as spec.template.spec.containers[name=web].image.
	Path string `json:"path"`
	// Before and After are nil if the field is absent.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`
}

// Hidden stands for a value that must not be shown.
const Hidden = "(hidden)"

// Fields compares two states of an object; nil is an absent one. Values of Secrets are hidden.
func Fields(before, after map[string]any) []Change {
	d := differ{}
	switch {
	case before == nil && after == nil:
	case before == nil:
		d.add("", nil, after)
	case after == nil:
		d.add("", before, nil)
	default:
		d.maps("", before, after)
	}
	if isSecret(before) || isSecret(after) {
		d.changes = hide(d.changes)
	}
	slices.SortStableFunc(d.changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return d.changes
}

type differ struct {
	changes []Change
	depth   int
}

func (d *differ) add(path string, before, after any) {
	d.changes = append(d.changes, Change{Path: path, Before: before, After: after})
}

func (d *differ) values(path string, before, after any) {
	if d.depth++; d.depth > limits.DocumentDepth {
		d.depth--
		if !reflect.DeepEqual(before, after) {
			d.add(path, before, after)
		}
		return
	}
	defer func() { d.depth-- }()
	beforeMap, isMap := before.(map[string]any)
	afterMap, both := after.(map[string]any)
	if isMap && both {
		d.maps(path, beforeMap, afterMap)
		return
	}
	beforeList, isList := before.([]any)
	afterList, both := after.([]any)
	if isList && both {
		d.lists(path, beforeList, afterList)
		return
	}
	if !equal(before, after) {
		d.add(path, before, after)
	}
}

// equal holds for 1 and 1.0. Whole numbers are not compared as floating point, which is not exact.
func equal(a, b any) bool {
	m, isWhole := a.(int64)
	n, bothWhole := b.(int64)
	if isWhole && bothWhole {
		return m == n
	}
	x, isNumber := number(a)
	y, both := number(b)
	if isNumber && both {
		return x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func (d *differ) maps(path string, before, after map[string]any) {
	for _, key := range sets.List(sets.KeySet(before).Union(sets.KeySet(after))) {
		was, had := before[key]
		is, has := after[key]
		switch {
		case had && has:
			d.values(Child(path, key), was, is)
		case had && was != nil:
			d.add(Child(path, key), was, nil)
		case has && is != nil:
			d.add(Child(path, key), nil, is)
		}
	}
}

func (d *differ) lists(path string, before, after []any) {
	if key := listKey(before, after); key != "" {
		d.keyed(path, key, before, after)
		return
	}
	if !allMaps(before) || !allMaps(after) {
		if !reflect.DeepEqual(before, after) {
			d.add(path, before, after) // a list of plain values reads best as a whole
		}
		return
	}
	for i := range max(len(before), len(after)) {
		at := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= len(before):
			d.add(at, nil, after[i])
		case i >= len(after):
			d.add(at, before[i], nil)
		default:
			d.values(at, before[i], after[i])
		}
	}
}

// keyed matches elements by key. Their order is compared, too: in some lists it matters.
func (d *differ) keyed(path, key string, before, after []any) {
	index := func(list []any) (names []string, byName map[string]any) {
		byName = map[string]any{}
		for _, element := range list {
			name := fmt.Sprint(element.(map[string]any)[key])
			names, byName[name] = append(names, name), element
		}
		return names, byName
	}
	wasNames, was := index(before)
	isNames, is := index(after)
	for _, name := range wasNames {
		if _, stays := is[name]; !stays {
			d.add(element(path, key, name), was[name], nil)
			continue
		}
		d.values(element(path, key, name), was[name], is[name])
	}
	for _, name := range isNames {
		if _, had := was[name]; !had {
			d.add(element(path, key, name), nil, is[name])
		}
	}
	stay := func(names []string, other map[string]any) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := other[name]; return !ok })
	}
	if old, now := stay(wasNames, is), stay(isNames, was); !slices.Equal(old, now) {
		d.add(path+"[order]", strings.Join(old, ", "), strings.Join(now, ", "))
	}
}

func element(path, key, name string) string { return path + "[" + key + "=" + name + "]" }

// keys of list elements in Kubernetes, the best first.
var keys = []string{"name", "key", "type", "containerPort", "port", "mountPath", "devicePath", "topologyKey", "ip", "host", "path"}

// listKey returns the first key that is unique in both lists; empty if there is none.
func listKey(before, after []any) string {
	for _, key := range keys {
		if len(before)+len(after) > 0 && names(before, key) && names(after, key) {
			return key
		}
	}
	return ""
}

func names(list []any, key string) bool {
	seen := map[string]bool{}
	for _, element := range list {
		m, ok := element.(map[string]any)
		if !ok {
			return false
		}
		switch v := m[key].(type) {
		case string, int64, float64:
			text := fmt.Sprint(v)
			if seen[text] {
				return false
			}
			seen[text] = true
		default:
			return false
		}
	}
	return true
}

func allMaps(list []any) bool {
	for _, element := range list {
		if _, ok := element.(map[string]any); !ok {
			return false
		}
	}
	return true
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Child is the path of a key below another path.
func Child(path, key string) string {
	if !plainKey.MatchString(key) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func isSecret(obj map[string]any) bool {
	return obj != nil && obj["kind"] == "Secret" && obj["apiVersion"] == "v1"
}

// lastApplied is an annotation with a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func hide(changes []Change) []Change {
	for i := range changes {
		c := &changes[i]
		before, after := c.Before, c.After
		switch {
		case c.Path == "":
			c.Before, c.After = Mask(before), Mask(after)
		case isValue(c.Path):
			c.Before, c.After = hidden(before), hidden(after)
		}
	}
	return changes
}

// isValue reports whether a path is of a value of a Secret, or of a copy.
func isValue(path string) bool {
	for _, field := range []string{"data", "stringData"} {
		if path == field || strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[") {
			return true
		}
	}
	return path == "metadata.annotations" || path == Child("metadata.annotations", lastApplied)
}

// hidden keeps the keys of a map and hides the rest.
func hidden(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			out[key] = Hidden
		}
		return out
	}
	return Hidden
}

// Mask returns a copy of an object without the values of a Secret.
func Mask(v any) any {
	obj, ok := v.(map[string]any)
	if !ok || !isSecret(obj) {
		return v
	}
	out := maps.Clone(obj)
	for _, field := range []string{"data", "stringData"} {
		if value, ok := out[field]; ok {
			out[field] = hidden(value)
		}
	}
	meta, _ := out["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if _, ok := annotations[lastApplied]; ok {
		meta, annotations = maps.Clone(meta), maps.Clone(annotations)
		annotations[lastApplied] = Hidden
		meta["annotations"], out["metadata"] = annotations, meta
	}
	return out
}
