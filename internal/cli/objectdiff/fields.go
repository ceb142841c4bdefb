package objectdiff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/aymanbagabas/go-udiff/lcs"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/listkeys"
)

// Change is one field that differs.
type Change struct {
	// Path of the field, such as spec.template.spec.containers[name=web].image.
	Path string `json:"path"`
	// Before and After are nil if the field is absent.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`
}

// Elements represents the elements of a list in a path for ListKeys.
const Elements = "[]"

// Hidden replaces a value that must not be shown.
const Hidden = "(hidden)"

// ListKeys returns the keys of the list at a path by the schema; nil if they are unknown. In the
// path, [] represents elements of lists.
type ListKeys func(path []string) []string

// Fields compares two states of an object. A nil state is an absent object. keys may be nil. Values
// of Secrets are hidden.
func Fields(before, after map[string]any, keys ListKeys) []Change {
	d := differ{keys: keys}
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
		for i := range d.changes {
			c := &d.changes[i]
			switch before, after := c.Before, c.After; {
			case c.Path == "":
				c.Before, c.After = Mask(before), Mask(after)
			case isValue(c.Path):
				c.Before, c.After = hidden(before), hidden(after)
			}
		}
	}
	slices.SortStableFunc(d.changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return d.changes
}

// differ collects the differences of two objects.
type differ struct {
	keys    ListKeys
	changes []Change
	// at is the path for keys.
	at []string
}

// add adds a difference.
func (d *differ) add(path string, before, after any) {
	d.changes = append(d.changes, Change{Path: path, Before: before, After: after})
}

// values compares two values at a path. part is the last element of the path for keys.
func (d *differ) values(path, part string, before, after any) {
	d.at = append(d.at, part)
	defer func() { d.at = d.at[:len(d.at)-1] }()
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

// equal compares values as JSON, which is the same for 1 and 1.0.
func equal(a, b any) bool { return slices.Equal(texts([]any{a}), texts([]any{b})) }

// maps compares two mappings key by key, in alphabetical order. An absent key equals null.
func (d *differ) maps(path string, before, after map[string]any) {
	for _, key := range sets.List(sets.KeySet(before).Union(sets.KeySet(after))) {
		was, had := before[key]
		is, has := after[key]
		switch {
		case had && has:
			d.values(Child(path, key), key, was, is)
		case had && was != nil:
			d.add(Child(path, key), was, nil)
		case has && is != nil:
			d.add(Child(path, key), nil, is)
		}
	}
}

// lists compares two lists: by the names of their elements, as a whole, or by content.
func (d *differ) lists(path string, before, after []any) {
	var keys []string
	if d.keys != nil {
		keys = d.keys(d.at)
	}
	if names, ok := listkeys.Identify(keys, before, after); ok {
		d.keyed(path, names, before, after)
		return
	}

	plain := slices.ContainsFunc(slices.Concat(before, after), func(element any) bool {
		_, is := element.(map[string]any)
		return !is
	})
	if plain && len(encode(before)) <= wholeList && len(encode(after)) <= wholeList {
		if !reflect.DeepEqual(before, after) {
			d.add(path, before, after) // a short list of plain values is easiest to read as a whole
		}
		return
	}

	d.unnamed(path, before, after)
}

// wholeList is the maximum length, as JSON, of a list of plain values that is compared as a whole.
const wholeList = 80

// unnamed matches elements without names by their content, because the removal of the first element
// moves all others without changing them. Elements between the same neighbours are matched by
// position.
func (d *differ) unnamed(path string, before, after []any) {
	at := func(i int) string { return path + "[" + strconv.Itoa(i) + "]" }
	for _, part := range lcs.DiffLines(texts(before), texts(after)) {
		i, j := part.Start, part.ReplStart
		for ; i < part.End && j < part.ReplEnd; i, j = i+1, j+1 {
			d.values(at(j), Elements, before[i], after[j])
		}
		for ; i < part.End; i++ {
			d.add(at(i), before[i], nil)
		}
		for ; j < part.ReplEnd; j++ {
			d.add(at(j), nil, after[j])
		}
	}
}

// texts returns elements as JSON, which is the same for 1 and 1.0.
func texts(list []any) []string {
	all := make([]string, len(list))
	for i, element := range list {
		raw, _ := json.Marshal(element) // it was decoded from JSON
		all[i] = string(raw)
	}
	return all
}

// keyed matches elements by their names. It also compares their order, which matters in some lists.
func (d *differ) keyed(path string, names [][]string, before, after []any) {
	index := func(names []string) map[string]int {
		at := make(map[string]int, len(names))
		for i, name := range names {
			at[name] = i
		}
		return at
	}

	was, is := index(names[0]), index(names[1])
	for i, name := range names[0] {
		if at, stays := is[name]; stays {
			d.values(path+"["+name+"]", Elements, before[i], after[at])
		} else {
			d.add(path+"["+name+"]", before[i], nil)
		}
	}

	for i, name := range names[1] {
		if _, had := was[name]; !had {
			d.add(path+"["+name+"]", nil, after[i])
		}
	}

	stay := func(names []string, other map[string]int) (values []string) {
		for _, name := range names {
			if _, ok := other[name]; ok {
				_, value, _ := strings.Cut(name, "=")
				values = append(values, value)
			}
		}
		return values
	}
	if old, now := stay(names[0], is), stay(names[1], was); !slices.Equal(old, now) {
		d.add(path+"[order]", strings.Join(old, ", "), strings.Join(now, ", "))
	}
}

// plainKey matches the keys that need no quotes in a path.
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

// isSecret reports whether an object is a Secret.
func isSecret(obj map[string]any) bool {
	return obj != nil && obj["kind"] == "Secret" && obj["apiVersion"] == "v1"
}

// lastApplied is an annotation with a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// isValue reports whether a path leads to a value of a Secret, or to a copy of one.
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

const (
	shownBefore = 20 // runes of two long values before their first difference
	shownLines  = 20 // lines of the difference between two texts
)

// Text returns the two values of a change on one line each, cut to a width around their first
// difference.
func (c Change) Text(width int) (before, after string) {
	before, after = encode(c.Before), encode(c.After)
	return around(before, after, width), around(after, before, width)
}

// Lines returns the difference between two texts with several lines, as lines of a diff; nil for
// other values.
func (c Change) Lines() []string {
	was, isText := c.Before.(string)
	is, both := c.After.(string)
	if !isText || !both || !severalLines(was) && !severalLines(is) {
		return nil
	}
	return lineDiff(was, is)
}

// severalLines reports whether a text has a line break before its end.
func severalLines(text string) bool { return strings.Contains(strings.TrimSuffix(text, "\n"), "\n") }

// encode returns a value as JSON on one line.
func encode(v any) string {
	if v == Hidden {
		return Hidden
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "?"
	}

	return terminal.Line(strings.TrimSpace(buf.String()))
}

// around cuts a text to a width so that its first difference from another text stays visible.
func around(text, other string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes, others, same := []rune(text), []rune(other), 0
	for same < len(runes) && same < len(others) && runes[same] == others[same] {
		same++
	}

	if from := min(same-shownBefore, len(runes)-width+1); from > 0 {
		return objects.TruncateTo("…"+string(runes[from:]), width)
	}
	return objects.TruncateTo(text, width)
}

// lineDiff returns the lines that differ, each with a sign, and one line around them. Lines beyond
// the limit are counted.
func lineDiff(before, after string) (lines []string) {
	diff, err := udiff.ToUnified("", "", before, udiff.Lines(before, after), 1)
	if err != nil {
		return nil // cannot happen, because the edits belong to these texts
	}
	more := 0
	for i, line := range strings.Split(strings.TrimSuffix(diff, "\n"), "\n") {
		switch {
		case i < 2, i == 2 && strings.HasPrefix(line, "@@"): // the names of the files, and the first place
		case len(lines) == shownLines:
			more++
		case strings.HasPrefix(line, "@@"):
			lines = append(lines, "…")
		case strings.HasPrefix(line, `\ `): // a missing newline counts only if the other text has one
			if bothEnds := strings.HasSuffix(before, "\n") == strings.HasSuffix(after, "\n"); !bothEnds {
				lines = append(lines, "  (no newline at the end)")
			}
		default:
			lines = append(lines, line[:1]+" "+terminal.Line(line[1:]))
		}
	}

	if more > 0 {
		lines = append(lines, fmt.Sprintf("… %d more lines", more))
	}
	return lines
}
