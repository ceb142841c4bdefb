package drift

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

// In the templates of these properties, the first letters of a field are its type: "al" is an
// associative list with the key name, "se" a set, "at" a list and "am" a map that are owned as a
// whole, and "ma" a map that is owned by keys.

func scalar() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.SampledFrom([]any{"", "a", "1", "true", "null", "~", "\"", "é\x01", strings.Repeat("x", 40)}),
		rapid.Map(rapid.Int64Range(-3, 3), func(n int64) any { return n }),
		rapid.Map(rapid.Float64Range(-2, 2), func(f float64) any { return f }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
	)
}

func drawFields(t *rapid.T, depth int, label string) map[string]any {
	fields := map[string]any{}
	for i := range rapid.IntRange(1, 4).Draw(t, label+" fields") {
		kind := "sc"
		if depth > 0 {
			kind = rapid.SampledFrom([]string{"sc", "ma", "al", "se", "at", "am"}).Draw(t, label+" kind")
		}
		name := fmt.Sprintf("%s%d", kind, i)
		fields[name] = drawField(t, kind, depth, label+"."+name)
	}
	return fields
}

func drawField(t *rapid.T, kind string, depth int, label string) any {
	switch kind {
	case "ma", "am":
		return drawFields(t, depth-1, label)
	case "al":
		var list []any
		for i := range rapid.IntRange(1, 3).Draw(t, label+" elements") {
			element := drawFields(t, depth-1, fmt.Sprintf("%s[%d]", label, i))
			element["name"] = fmt.Sprintf("e%d", i)
			list = append(list, element)
		}
		return list
	case "se":
		return []any{"s0", "s1"}[:rapid.IntRange(1, 2).Draw(t, label+" values")]
	case "at":
		return []any{drawFields(t, depth-1, label+"[0]"), scalar().Draw(t, label+"[1]")}
	default:
		return scalar().Draw(t, label)
	}
}

// managedFields returns the managedFields of an apply of the template.
func managedFields(template map[string]any) []metav1.ManagedFieldsEntry {
	text, err := json.Marshal(fieldSet(template))
	if err != nil {
		panic(err)
	}
	return []metav1.ManagedFieldsEntry{{Manager: "package-operator", FieldsV1: metav1.NewFieldsV1(string(text))}}
}

func fieldSet(fields map[string]any) map[string]any {
	set := map[string]any{}
	for name, value := range fields {
		set["f:"+name] = fieldSetOf(name, value)
	}
	return set
}

func fieldSetOf(name string, value any) map[string]any {
	set := map[string]any{}
	switch name[:2] {
	case "ma":
		set = fieldSet(value.(map[string]any))
	case "al":
		for _, element := range value.([]any) {
			inner := fieldSet(element.(map[string]any))
			inner["."] = map[string]any{}
			set[fmt.Sprintf(`k:{"name":%q}`, element.(map[string]any)["name"])] = inner
		}
	case "se":
		for _, element := range value.([]any) {
			set[fmt.Sprintf("v:%q", element)] = map[string]any{}
		}
	}

	return set
}

func drawTemplate(t *rapid.T) (template map[string]any, types *ListTypes) {
	template = map[string]any{
		"apiVersion": "v1", "kind": "A",
		"metadata": map[string]any{
			"name": "a", "labels": map[string]any{"l": "x"}, "annotations": map[string]any{"n": "y"},
			"ownerReferences": []any{map[string]any{"apiVersion": "a/v1", "kind": "O", "name": "o", "uid": "u", "controller": true}},
		},
		"maspec": drawFields(t, 3, "spec"),
	}
	return template, LearnListTypes(managedFields(map[string]any{"maspec": template["maspec"]}))
}

// addForeign adds everything that others can add, wherever they can.
func addForeign(t *rapid.T, kind string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		if kind == "am" {
			return value
		}
		for name := range value {
			value[name] = addForeign(t, name[:2], value[name])
		}
		if rapid.Bool().Draw(t, "add a key") {
			value["zz"] = scalar().Draw(t, "foreign")
		}
		return value
	case []any:
		if kind == "al" {
			for _, element := range value {
				addForeign(t, "", element)
			}
		}
		if (kind == "al" || kind == "se") && rapid.Bool().Draw(t, "add an element") {
			var element any = "foreign"
			if kind == "al" {
				element = map[string]any{"name": "foreign", "x": scalar().Draw(t, "foreign")}
			}
			value = slices.Insert(value, rapid.IntRange(0, len(value)).Draw(t, "place"), element)
		}
		return value
	default:
		return value
	}
}

func TestForeignAdditionsAreNoDrift(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		template, types := drawTemplate(t)
		live := copyOf(template)
		before := Project(apinames.Default, template, live, types)
		if !Matches(apinames.Default, template, live, types) {
			t.Fatal("a template does not match itself")
		}
		live["maspec"] = addForeign(t, "ma", live["maspec"])
		live["status"] = map[string]any{"x": int64(1)}
		live["zz"] = map[string]any{"x": int64(1)}
		metadata := live["metadata"].(map[string]any)
		metadata["labels"].(map[string]any)["foreign"] = "x"
		metadata["annotations"].(map[string]any)["foreign"] = "x"
		metadata["managedFields"] = []any{}
		metadata["ownerReferences"] = slices.Insert(metadata["ownerReferences"].([]any), 0, any(map[string]any{"uid": "w"}))
		if Project(apinames.Default, template, live, types) != before {
			t.Errorf("what others add changes the projection: %v", live)
		}
		if !Matches(apinames.Default, template, live, types) {
			t.Errorf("what others add breaks the match: %v", live)
		}
	})
}

// edit is a change of one live value.
type edit struct {
	path string
	do   func()
}

// edits returns all changes to one template value on the live object.
func edits(path string, value any, set func(any), drop func()) []edit {
	all := []edit{{path + " dropped", drop}}
	if value == "changed" {
		return all
	}

	switch value := value.(type) {
	case map[string]any:
		all = append(all, edit{path + " replaced", func() { set("changed") }})
		for name := range value {
			all = append(all, edits(path+"."+name, value[name],
				func(to any) { value[name] = to }, func() { delete(value, name) })...)
		}
	case []any:
		all = append(all, edit{path + " replaced", func() { set("changed") }})
		for i := range value {
			all = append(all, edits(fmt.Sprintf("%s[%d]", path, i), value[i],
				func(to any) { value[i] = to }, func() { set(slices.Delete(slices.Clone(value), i, i+1)) })...)
		}
	default:
		all = append(all, edit{path + " changed", func() { set("changed") }})
	}

	return all
}

func TestEveryChangeOnATemplatePathIsDrift(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		template, types := drawTemplate(t)
		live := copyOf(template)
		if rapid.Bool().Draw(t, "beside others") {
			live["maspec"] = addForeign(t, "ma", live["maspec"])
		}
		before := Project(apinames.Default, template, live, types)
		// Foreign values are not edited.
		var all []edit
		for _, e := range edits("", live["maspec"], func(to any) { live["maspec"] = to }, func() { delete(live, "maspec") }) {
			if !strings.Contains(e.path, "zz") {
				all = append(all, e)
			}
		}
		one := all[rapid.IntRange(0, len(all)-1).Draw(t, "edit")]
		matched := copyOf(live)
		one.do()
		if isForeign(template, matched, live, types) {
			return
		}
		if Project(apinames.Default, template, live, types) == before {
			t.Errorf("%s: no drift in %v", one.path, live)
		}
		if Matches(apinames.Default, template, live, types) {
			t.Errorf("%s: still matches: %v", one.path, live)
		}
	})
}

// isForeign reports whether an edit changed only an element that the template lacks. It checks this
// the slow way: every value of the template is still there.
func isForeign(template, before, after map[string]any, types *ListTypes) bool {
	return stands("ma", template["maspec"], before["maspec"]) && stands("ma", template["maspec"], after["maspec"])
}

// stands is a plain model of Matches.
func stands(kind string, template, live any) bool {
	switch template := template.(type) {
	case map[string]any:
		fields, isMap := live.(map[string]any)
		if !isMap || (kind == "am" && len(fields) != len(template)) {
			return false
		}
		for name, value := range template {
			inner := name[:2]
			if kind == "am" {
				inner = "am"
			}
			if against, found := fields[name]; !found || !stands(inner, value, against) {
				return false
			}
		}
		return true
	case []any:
		values, isList := live.([]any)
		if !isList || (kind != "al" && kind != "se" && len(values) != len(template)) {
			return false
		}
		from := 0
		for _, element := range template {
			found := slices.IndexFunc(values[from:], func(other any) bool { return stands("ma", element, other) })
			if kind != "al" && kind != "se" {
				found = 0
				if !stands("at", element, values[from]) {
					return false
				}
			}
			if found < 0 {
				return false
			}
			if kind != "se" {
				from += found + 1
			}
		}
		return true
	default:
		return same(template, live)
	}
}

func TestOrderAndTypesAreIrrelevant(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		template, types := drawTemplate(t)
		live := copyOf(template)
		before := Project(apinames.Default, template, live, types)
		digest := Digest(live)
		// A copied map has another order, and floats replace whole numbers.
		again := asFloats(live).(map[string]any)
		if Project(apinames.Default, template, again, types) != before || Digest(again) != digest || !Matches(apinames.Default, template, again, types) {
			t.Error("order of keys or types of numbers change the outcome")
		}
		text, err := json.Marshal(live)
		require.NoError(t, err)
		if Digest(json.RawMessage(text)) != digest {
			t.Error("the digest depends on the Go type")
		}
	})
}

func asFloats(value any) any {
	switch value := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for name := range value {
			result[name] = asFloats(value[name])
		}
		return result
	case []any:
		result := make([]any, len(value))
		for i := range value {
			result[i] = asFloats(value[i])
		}
		return result
	case int64:
		return float64(value)
	default:
		return value
	}
}
