package objects_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

func TestParseIgnoredFields(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     "",
		"/spec/replicas\n\n /a ":               "",
		"/metadata/annotations/example.com~1a": "",
		"spec/replicas":                        "is not a JSON pointer to a field",
		"/":                                    `has the part ""`,
		"/spec/list/-":                         `has the part "-"`,
		"/spec/~2":                             "a ~ that is followed by neither",
		"/apiVersion":                          "identifies the object",
		"/kind":                                "identifies the object",
		"/status/replicas":                     "is never written",
		"/stringData/a":                        "name /data/KEY",
		"/metadata":                            "only single labels and annotations",
		"/metadata/name":                       "only single labels and annotations",
		"/metadata/namespace":                  "only single labels and annotations",
		"/metadata/labels":                     "only single labels and annotations",
		"/metadata/labels/package-operator.run~1cache":    "is set by the engine",
		"/metadata/annotations/a.package-operator.run~1b": "is set by the engine",
		"/" + strings.Repeat("a", 600):                    "601 bytes; the limit is",
		strings.Repeat("/a", 30):                          "has 30 parts; the limit is",
		strings.Repeat("/spec/a\n", 40):                   "more than 32 fields",
	} {
		_, err := apinames.Default.ParseIgnoredFields(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}

	path, err := apinames.Default.ParseFieldPointer("/metadata/annotations/example.com~1a~0b")
	if err != nil || path[2] != "example.com/a~b" || objects.FieldPointer(path) != "/metadata/annotations/example.com~1a~0b" {
		t.Errorf("got %q, %v", path, err)
	}
}

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &out))
	return out
}

func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fields, template, live string
		owned                  bool
		keep, without          string
	}{
		"as on the live object": {
			fields: "/spec/a", template: "{spec: {a: 1, b: 1}}", live: "{spec: {a: 2, b: 2}}",
			keep: "{spec: {a: 2, b: 1}}", without: "{spec: {b: 2}}",
		},
		"owned by others":          {fields: "/spec/a", template: "{spec: {a: 1, b: 1}}", live: "{spec: {a: 2}}", owned: true, keep: "{spec: {b: 1}}", without: "{spec: {}}"},
		"removed by others":        {fields: "/spec/a", template: "{spec: {a: 1}}", live: "{spec: {}}", keep: "{spec: {}}", without: "{spec: {}}"},
		"set by others":            {fields: "/spec/a", template: "{spec: {}}", live: "{spec: {a: 2}}", keep: "{spec: {a: 2}}", without: "{spec: {}}"},
		"in none of its paths yet": {fields: "/spec/a/b", template: "{spec: {a: {b: 1}}}", live: "{spec: {}}", keep: "{spec: {a: {b: 1}}}", without: "{spec: {}}"},
		"an element by its name": {
			fields: "/hooks/0/policy\n/hooks/1/policy", template: "{hooks: [{name: x, policy: Ignore}, {name: new, policy: Ignore}]}",
			live: "{hooks: [{name: other, policy: A}, {name: x, policy: Fail}]}",
			keep: "{hooks: [{name: x, policy: Fail}, {name: new, policy: Ignore}]}", without: "{hooks: [{name: other, policy: A}, {name: x}]}",
		},
		"an element by its position": {fields: "/l/1/a", template: "{l: [{a: 1}, {a: 1}]}", live: "{l: [{a: 2}, {a: 2}]}", keep: "{l: [{a: 1}, {a: 2}]}", without: "{l: [{a: 2}, {}]}"},
	} {
		f, err := apinames.Default.ParseIgnoredFields(tc.fields)
		require.NoError(t, err)
		template, live := decode(t, tc.template), decode(t, tc.live)
		require.Equal(t, decode(t, tc.keep), f.Keep(template, live, func([]string) bool { return tc.owned }), name)
		require.Equal(t, decode(t, tc.without), f.Without(template, live), name)
	}

	whole, _ := apinames.Default.ParseIgnoredFields("/spec/args/0")
	require.ErrorContains(t, whole.Check(decode(t, "{spec: {args: [a]}}")), "element of a list")
	if err := whole.Check(decode(t, "{spec: {args: {'0': a}}}")); err != nil {
		t.Error(err)
	}
}

// For any template, live object and fields, the ignored fields equal the live object's and all
// other fields the template's. No argument changes, and a second Keep changes nothing.
func TestIgnoredFieldsProperties(t *testing.T) {
	t.Parallel()
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			kind := rapid.IntRange(0, 4).Draw(t, "kind")
			switch {
			case depth == 0 || kind < 2:
				return rapid.SampledFrom([]any{"a", "b", float64(1), true}).Draw(t, "leaf")
			case kind == 4:
				return rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "list")
			}
			out := map[string]any{}
			for _, key := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "name", "0"}), func(s string) string { return s }).Draw(t, "keys") {
				out[key] = value(depth-1).Draw(t, key)
			}
			return out
		})
	}

	object := rapid.Map(value(3), func(v any) map[string]any { return map[string]any{"spec": v} })
	rapid.Check(t, func(t *rapid.T) {
		template, live := object.Draw(t, "template"), object.Draw(t, "live")
		var f objects.IgnoredFields
		for range rapid.IntRange(0, 3).Draw(t, "fields") {
			f = append(f, append([]string{"spec"}, rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "0", "1"}), 1, 4).Draw(t, "path")...))
		}
		if f.Check(template) != nil {
			return
		}
		before := fmt.Sprint(text(template), text(live))
		none := func([]string) bool { return false }
		kept := f.Keep(template, live, none)
		if fmt.Sprint(text(template), text(live)) != before {
			t.Fatal("an argument has changed")
		}
		if diff := cmp.Diff(f.Without(template, template), f.Without(template, kept)); diff != "" {
			t.Fatalf("another field has changed: %s", diff)
		}
		if diff := cmp.Diff(kept, f.Keep(template, live, none)); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(template, f.Keep(template, template, none)); diff != "" {
			t.Fatalf("an object that shows the template: %s", diff)
		}
		if left := f.Without(template, f.Without(template, live)); text(left) != text(f.Without(template, live)) {
			t.Fatal("Without leaves something")
		}
	})
}

func text(v any) string {
	out, _ := json.Marshal(v)
	return string(out)
}
