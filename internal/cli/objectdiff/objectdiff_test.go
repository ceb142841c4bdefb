package objectdiff_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &out))
	return out
}

func TestFields(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	for _, tc := range []struct {
		reason        string
		before, after string
		want          []objectdiff.Change
	}{
		{"equal objects do not differ", "a: 1\nb: [x]", "b: [x]\na: 1.0", nil},
		{"fields by path, sorted", "spec: {b: 1, a: x}", "spec: {b: 2, c: true}", []objectdiff.Change{
			{Path: "spec.a", Before: "x"}, {Path: "spec.b", Before: 1.0, After: 2.0}, {Path: "spec.c", After: true},
		}},
		{"containers by name, wherever they stand", "c: [{name: web, image: a}]", "c: [{name: side, image: s}, {name: web, image: b}]", []objectdiff.Change{
			{Path: "c[name=side]", After: map[string]any{"name": "side", "image": "s"}},
			{Path: "c[name=web].image", Before: "a", After: "b"},
		}},
		{"the order of the remaining elements", "c: [{name: a}, {name: b}]", "c: [{name: b}, {name: a}]", []objectdiff.Change{
			{Path: "c[order]", Before: "a, b", After: "b, a"},
		}},
		{"elements without a name, by position", "r: [{verbs: [get]}]", "r: [{verbs: [get, list]}, {verbs: ['*']}]", []objectdiff.Change{
			{Path: "r[0].verbs", Before: []any{"get"}, After: []any{"get", "list"}},
			{Path: "r[1]", After: map[string]any{"verbs": []any{"*"}}},
		}},
		{"elements without a name that stay, by their content", "r: [{verbs: [get]}, {verbs: [list]}, {verbs: [watch]}]", "r: [{verbs: [list]}, {verbs: [watch, get]}]", []objectdiff.Change{
			{Path: "r[0]", Before: map[string]any{"verbs": []any{"get"}}},
			{Path: "r[1].verbs", Before: []any{"watch"}, After: []any{"watch", "get"}},
		}},
		{"elements of a long list of plain values", "c: [sh, -c, " + long + "]", "c: [sh, -x, -c, " + long + "]", []objectdiff.Change{{Path: "c[1]", After: "-x"}}},
		{"a duplicate name identifies no element", "e: [{name: a, v: 1}, {name: a, v: 2}]", "e: [{name: a, v: 1}, {name: a, v: 3}]", []objectdiff.Change{
			{Path: "e[1].v", Before: 2.0, After: 3.0},
		}},
		{"keys that are not words", "l: {app/name: a}", "l: {app/name: b}", []objectdiff.Change{
			{Path: `l["app/name"]`, Before: "a", After: "b"},
		}},
		{"another type", "a: {b: 1}", "a: [1]", []objectdiff.Change{{Path: "a", Before: map[string]any{"b": 1.0}, After: []any{1.0}}}},
		{"null is absent", "a: null", "b: null", nil},
		{
			"values of a Secret are hidden, its type is not",
			"apiVersion: v1\nkind: Secret\ntype: a\ndata: {k: c2VjcmV0, same: eA==}",
			"apiVersion: v1\nkind: Secret\ntype: b\ndata: {k: b3RoZXI=, same: eA==}\nstringData: {s: secret}",
			[]objectdiff.Change{
				{Path: "data.k", Before: objectdiff.Hidden, After: objectdiff.Hidden},
				{Path: "stringData", After: map[string]any{"s": objectdiff.Hidden}},
				{Path: "type", Before: "a", After: "b"},
			},
		},
	} {
		got := objectdiff.Fields(object(t, tc.before), object(t, tc.after), nil)
		require.Equal(t, tc.want, got, tc.reason)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 100)
	before, after := objectdiff.Change{Before: long + "b", After: long + "c" + long}.Text(40)
	if !strings.HasPrefix(before, "…a") || !strings.HasSuffix(before, `ab"`) {
		t.Errorf("got %s", before)
	}
	if !strings.HasPrefix(after, "…"+strings.Repeat("a", 20)+"c") || !strings.HasSuffix(after, "…") {
		t.Errorf("got %s", after)
	}
	if before, after := (objectdiff.Change{Before: 1.0, After: "x"}).Text(40); before != "1" || after != `"x"` {
		t.Errorf("got %s, %s", before, after)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	lines := objectdiff.Change{Before: "a\nb\nc\nd\n", After: "a\nb\nx\nd"}.Lines()
	require.Equal(t, []string{"  b", "- c", "- d", "+ x", "+ d", "  (no newline at the end)"}, lines)
	if lines := (objectdiff.Change{Before: "a", After: "b"}).Lines(); lines != nil {
		t.Errorf("got %q", lines)
	}
	many := strings.Repeat("a\nb\n", 50)
	lines = objectdiff.Change{Before: many, After: strings.ReplaceAll(many, "a", "c")}.Lines()
	if len(lines) != 21 || !strings.HasSuffix(lines[20], " more lines") {
		t.Errorf("got %q", lines)
	}
}

// However a Secret changes, no result has its values.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	const value = "c2VjcmV0LXZhbHVl"
	secret := object(t, "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: '"+value+"'\ndata: {k: "+value+"}\nstringData: {k: "+value+"}")
	bare := object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: a}")
	other := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}")
	for _, pair := range [][2]map[string]any{{secret, nil}, {nil, secret}, {secret, bare}, {bare, secret}, {secret, other}, {other, secret}} {
		encoded, err := json.Marshal(objectdiff.Fields(pair[0], pair[1], nil))
		require.NoError(t, err)
		if strings.Contains(string(encoded), value) || !strings.Contains(string(encoded), objectdiff.Hidden) {
			t.Errorf("got %s", encoded)
		}
	}
	encoded, err := json.Marshal(objectdiff.Mask(secret))
	if err != nil || strings.Contains(string(encoded), value) {
		t.Errorf("masked: %s, %v", encoded, err)
	}
	if secret["data"].(map[string]any)["k"] != value {
		t.Error("the object that was masked changed")
	}
}

func TestSets(t *testing.T) {
	t.Parallel()
	of := func(name, phase, value string) objectdiff.Object {
		return objectdiff.Object{Key: objects.Key{Kind: "ConfigMap", Name: name}, Phase: phase, Value: map[string]any{"data": value}}
	}
	before := []objectdiff.Object{of("same", "a", "1"), of("gone", "a", "1"), of("moved", "a", "1"), of("both", "a", "1"), of("changed", "b", "1")}
	after := []objectdiff.Object{of("changed", "b", "2"), of("both", "b", "2"), of("moved", "b", "1"), of("new", "b", "1"), of("same", "a", "1")}
	field := []objectdiff.Change{{Path: "data", Before: "1", After: "2"}}
	want := []objectdiff.Difference{
		{Action: objectdiff.Changed, ID: objectdiff.ID{Kind: "ConfigMap", Name: "changed"}, Phase: "b", Fields: field},
		{Action: objectdiff.Changed, ID: objectdiff.ID{Kind: "ConfigMap", Name: "both"}, Phase: "b", PhaseBefore: "a", Fields: field},
		{Action: objectdiff.Moved, ID: objectdiff.ID{Kind: "ConfigMap", Name: "moved"}, Phase: "b", PhaseBefore: "a"},
		{Action: objectdiff.Added, ID: objectdiff.ID{Kind: "ConfigMap", Name: "new"}, Phase: "b"},
		{Action: objectdiff.Removed, ID: objectdiff.ID{Kind: "ConfigMap", Name: "gone"}, Phase: "a"},
	}
	require.Equal(t, want, objectdiff.Sets(before, after))
}

// Equal values have no difference and different ones have at least one. Both directions name the
// same paths.
func TestFieldsAreComplete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		before, after := drawMap(rt, 3), drawMap(rt, 3)
		if got := objectdiff.Fields(before, before, nil); len(got) > 0 {
			rt.Fatalf("equal values differ: %v", got)
		}
		there, back := objectdiff.Fields(before, after, nil), objectdiff.Fields(after, before, nil)
		if (len(there) == 0) != cmp.Equal(before, after) {
			rt.Fatalf("%v and %v: %v", before, after, there)
		}
		paths := func(changes []objectdiff.Change) (out []string) {
			for _, c := range changes {
				out = append(out, c.Path)
			}
			return out
		}
		if diff := cmp.Diff(paths(there), paths(back)); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func drawMap(rt *rapid.T, depth int) map[string]any {
	out := map[string]any{}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "name", "x/y"}), 0, 3, rapid.ID).Draw(rt, "keys") {
		out[key] = drawValue(rt, depth-1)
	}
	return out
}

func drawValue(rt *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 3).Draw(rt, "kind")
	switch {
	case depth <= 0 || kind == 0:
		return rapid.SampledFrom([]any{"a", "b", int64(1), int64(2), true}).Draw(rt, "value")
	case kind == 1:
		return drawMap(rt, depth)
	}
	list := []any{}
	for range rapid.IntRange(0, 3).Draw(rt, "length") {
		list = append(list, drawValue(rt, depth-1))
	}
	return list
}

// Large integers differ even if they are the same number in floating point.
func TestLargeNumbers(t *testing.T) {
	t.Parallel()
	before, after := map[string]any{"n": int64(9007199254740992)}, map[string]any{"n": int64(9007199254740993)}
	want := []objectdiff.Change{{Path: "n", Before: int64(9007199254740992), After: int64(9007199254740993)}}
	require.Equal(t, want, objectdiff.Fields(before, after, nil))
}

// TestManagers finds the managers of a field.
func TestManagers(t *testing.T) {
	t.Parallel()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	status := entry("controller", `{"f:spec":{"f:replicas":{}}}`)
	status.Subresource = "scale"
	u.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry("package-operator", `{"f:spec":{"f:replicas":{}}}`), status,
		entry("autoscaler", `{"f:spec":{"f:replicas":{}}}`),
		entry("editor", `{"f:metadata":{"f:labels":{"f:example.com/team":{}}},"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}}}},"f:selector":{},"f:ports":{"k:{\"port\":53,\"protocol\":\"UDP\"}":{".":{}}},"f:tls":{"k:{\"host\":\"a.example.com,b.example.com\"}":{"f:secret":{}}},"f:env":{"k:{\"name\":\"A,B\"}":{"f:value":{}}}},"f:rules":{}}`),
	})
	m := objectdiff.ManagersOf(u, "package-operator")
	for path, want := range map[string][]string{
		"spec.replicas": {"autoscaler"},
		"spec.template.spec.containers[name=web].image":     {"editor"},
		"spec.template.spec.containers[name=web]":           {"editor"},
		"spec.template.spec.containers[name=db].image":      nil,
		"spec.ports[port=53,protocol=UDP]":                  {"editor"},
		"spec.ports[port=53,protocol=TCP]":                  nil,
		"spec.ports[protocol=UDP,port=53]":                  {"editor"},
		"spec.ports[port=53]":                               {"editor"},
		"spec.tls[host=a.example.com,b.example.com].secret": {"editor"},
		"spec.tls[host=a.example.com].secret":               nil,
		"spec.env[name=A,B].value":                          {"editor"},
		"spec.env[name=A,B,C].value":                        nil,
		"spec.env[name=A].value":                            nil,
		"spec.selector.matchLabels.app":                     {"editor"},
		`metadata.labels["example.com/team"]`:               {"editor"},
		"metadata.labels":                                   {"editor"},
		"rules[0].verbs":                                    {"editor"},
		"spec.paused":                                       nil,
		"spec[":                                             nil,
		`spec["["]`:                                         nil,
	} {
		require.Equal(t, want, m.Of(path), path)
	}
}
