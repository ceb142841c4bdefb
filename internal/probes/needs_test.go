package probes

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

func TestNeeds(t *testing.T) {
	t.Parallel()
	path := func(keys string) []string { return strings.Split(keys, ".") }
	paths := func(texts ...string) Needs {
		var needs Needs
		for _, text := range texts {
			needs.Paths = append(needs.Paths, path(text))
		}
		return needs
	}
	whole := Needs{Whole: true}
	tests := []struct {
		reason string
		probes []corev1alpha1.Probe
		want   Needs
	}{
		{"conditions are in the status", []corev1alpha1.Probe{condition("Available", "")}, Needs{}},
		{"fields that are always kept", []corev1alpha1.Probe{
			rule("self.status.a == self.metadata.labels.b && self.kind == 'x' && has(self.metadata.name)", ""), fieldsEqual("status.x", ".metadata.uid")}, Needs{}},
		{"managedFields are never kept", []corev1alpha1.Probe{rule("has(self.metadata.managedFields)", "")}, Needs{}},
		{"dotted paths", []corev1alpha1.Probe{fieldsEqual(".spec.replicas", "status.replicas")}, paths("spec.replicas")},
		{"sorted, without included ones", []corev1alpha1.Probe{
			fieldsEqual(".spec.b.c", "spec.a"), fieldsEqual("spec.b", "spec.bb"), rule("self.spec.b.d == 1", "")}, paths("spec.a", "spec.b", "spec.bb")},
		{"metadata that is not always kept", []corev1alpha1.Probe{
			fieldsEqual("metadata.annotations.x", "metadata.creationTimestamp")}, paths("metadata.annotations.x", "metadata.creationTimestamp")},

		{"CEL: select, has, index", []corev1alpha1.Probe{
			rule(`has(self.spec.a.b) && self.spec["c"].d == 1 && self["data"]["e.f"] == ''`, "")},
			Needs{Paths: [][]string{{"data", "e.f"}, {"spec", "a", "b"}, {"spec", "c", "d"}}}},
		{"CEL: a list is read whole", []corev1alpha1.Probe{rule("self.spec.list[0].x == 1 && self.spec.other.all(x, x.y == self.spec.z)", "")},
			paths("spec.list", "spec.other", "spec.z")},
		{"CEL: index that is computed", []corev1alpha1.Probe{rule("self.data[self.metadata.name] == 'x'", "")}, paths("data")},
		{"CEL: self as a value", []corev1alpha1.Probe{rule("size(self) > 3", "")}, whole},
		{"CEL: self in", []corev1alpha1.Probe{rule("'spec' in self", "")}, whole},
		{"CEL: self in a list", []corev1alpha1.Probe{rule("[self].exists(x, x.y == 1)", "")}, whole},
		{"CEL: self in a map", []corev1alpha1.Probe{rule("{'a': self}.a.b == 1", "")}, whole},
		{"CEL: key of self that is computed", []corev1alpha1.Probe{rule("self[self.kind] == 1", "")}, whole},
		{"CEL: keys of self", []corev1alpha1.Probe{rule("self.all(k, k != 'x')", "")}, whole},
		{"CEL: conditional", []corev1alpha1.Probe{rule("(self.status.a ? self.spec.b : self.spec.c).d == 1", "")}, paths("spec.b", "spec.c")},

		{"jq: path", []corev1alpha1.Probe{fieldsEqual(".spec.a[0].b", `.data["x.y"]`)}, Needs{Paths: [][]string{{"data", "x.y"}, {"spec", "a"}}}},
		{"jq: pipe", []corev1alpha1.Probe{fieldsEqual(".spec | .a | .b", "(.spec.c).d")}, paths("spec")},
		{"jq: functions read their input", []corev1alpha1.Probe{fieldsEqual(".spec.a | length", ".spec.b | map(.c)")}, paths("spec.a", "spec.b")},
		{"jq: status", []corev1alpha1.Probe{fieldsEqual(`.status.conditions[] | select(.type == "x") | .status`, `("True")`)}, Needs{}},
		{"jq: operators, literals", []corev1alpha1.Probe{fieldsEqual(".spec.a + .spec.b * 2", ".spec.c // 1")}, paths("spec.a", "spec.b", "spec.c")},
		{"jq: constructors", []corev1alpha1.Probe{fieldsEqual("[.spec.c, {d: .spec.e}]", "x")}, whole},
		{"jq: branches", []corev1alpha1.Probe{fieldsEqual("if .spec.a then .spec.b else .spec.c end", "x")}, whole},
		{"jq: index that is computed", []corev1alpha1.Probe{fieldsEqual(".data[.spec.key]", "(.spec.n)")}, paths("data", "spec.key", "spec.n")},
		{"jq: generators", []corev1alpha1.Probe{fieldsEqual("first(.spec.a[] | select(.x))", "x")}, whole},
		{"jq: the object", []corev1alpha1.Probe{fieldsEqual(".", "x")}, whole},
		{"jq: keys of the object", []corev1alpha1.Probe{fieldsEqual(`has("x") and true`, "x")}, whole},
		{"jq: all values", []corev1alpha1.Probe{fieldsEqual(".. | numbers", "x")}, whole},
		{"jq: selection of the object", []corev1alpha1.Probe{fieldsEqual(`select(.spec.a)`, "x")}, whole},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			got := mustCompile(t, entryFor(test.probes...)).Needs(deploymentKind)
			require.Equal(t, test.want, got, "Needs")
		})
	}
	if got := mustCompile(t, entryFor(rule("size(self) > 3", ""))).Needs(schema.GroupKind{Kind: "Pod"}); got.Whole {
		t.Error("Pods are needed because of Deployments")
	}
}

func TestNeedsAcrossEntries(t *testing.T) {
	t.Parallel()
	a, b := entryFor(fieldsEqual("spec.a", "spec.b.c")), entryFor(fieldsEqual("spec.b", "status.x"))
	needs := mustCompile(t, a, b).Needs(deploymentKind)
	want := Needs{Paths: [][]string{{"spec", "a"}, {"spec", "b"}}}
	require.Equal(t, want, needs, "Needs")
	first, second := mustCompile(t, a).Needs(deploymentKind), mustCompile(t, b).Needs(deploymentKind)
	require.Equal(t, want, first.Union(second), "Union")
	for _, test := range []struct {
		reason   string
		has, ask Needs
		want     bool
	}{
		{"nothing asked", Needs{}, Needs{}, true}, {"the same", want, want, true},
		{"less", want, first, true}, {"more", first, want, false},
		{"whole has all", Needs{Whole: true}, want, true}, {"whole is more", want, Needs{Whole: true}, false},
	} {
		require.Equal(t, test.want, test.has.Covers(test.ask), fmt.Sprintf("%s: Covers", test.reason))
	}
}

func TestTrim(t *testing.T) {
	t.Parallel()
	const object = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: b
  uid: u
  generation: 1
  resourceVersion: "7"
  creationTimestamp: "2026-01-01T00:00:00Z"
  deletionTimestamp: "2026-01-02T00:00:00Z"
  labels: {l: x}
  annotations: {one: "1", two: "2"}
  ownerReferences: [{name: o}]
  managedFields: [{manager: m}]
data: {k: <v>, l: w}
status: {ready: true}
scalar: 1
`

	const always = `"apiVersion":"v1","kind":"ConfigMap","metadata":{`
	const kept = `"deletionTimestamp":"2026-01-02T00:00:00Z","generation":1,"labels":{"l":"x"},"name":"a","namespace":"b",` +
		`"ownerReferences":[{"name":"o"}],"resourceVersion":"7","uid":"u"}`
	const status = `,"status":{"ready":true}}`
	tests := []struct {
		reason string
		needs  Needs
		want   string
	}{
		{"nothing", Needs{}, `{` + always + kept + status},
		{"a value", Needs{Paths: [][]string{{"data", "k"}}},
			`{"apiVersion":"v1","data":{"k":"<v>"},"kind":"ConfigMap","metadata":{` + kept + status},
		{"parents of missing fields stay", Needs{Paths: [][]string{{"data", "x", "y"}, {"no", "such"}, {"scalar", "x"}}},
			`{"apiVersion":"v1","data":{},"kind":"ConfigMap","metadata":{` + kept + `,"scalar":1` + status},
		{"an annotation", Needs{Paths: [][]string{{"metadata", "annotations", "one"}}},
			`{` + always + `"annotations":{"one":"1"},` + kept + status},
	}

	for _, test := range tests {
		obj := yamltest.Decode(t, object)
		require.Equal(t, test.want, string(Trim(obj, test.needs)), fmt.Sprintf("%s: Trim", test.reason))
		require.Equal(t, yamltest.Decode(t, object), obj, fmt.Sprintf("%s: Trim changed the object", test.reason))
	}

	for reason, needs := range map[string]Needs{"whole": {Whole: true}, "metadata": {Paths: [][]string{{"metadata"}}}} {
		got := yamltest.Decode(t, string(Trim(yamltest.Decode(t, object), needs)))
		metadata := got["metadata"].(map[string]any)
		if _, found := metadata["managedFields"]; found || len(metadata) != 10 {
			t.Errorf("%s: metadata = %v", reason, metadata)
		}
		if _, found := got["data"]; found != needs.Whole {
			t.Errorf("%s: data kept: %t", reason, found)
		}
	}
}

func TestTrimSecret(t *testing.T) {
	t.Parallel()
	secret := yamltest.Decode(t, `{apiVersion: v1, kind: Secret, type: Opaque, data: {a: c2VjcmV0, b: c2VjcmV0, c: b3RoZXI=, d: ""}}`)
	gk := schema.GroupKind{Kind: "Secret"}
	for _, test := range []struct {
		text string
		want Status
	}{
		{"has(self.data.a) && !has(self.data.x)", True},
		{"self.data.a == self.data.b && self.data.a != self.data.c", True},
		{"self.data.a != '' && self.data.d == ''", True},
		{"size(self.data) == 4 && self.type == 'Opaque'", True},
		{"size(self) > 3 && self.data.a != ''", True},
		{"self.data.a == 'c2VjcmV0'", False},
	} {
		entry := corev1alpha1.ObjectSetProbe{
			Probes:   []corev1alpha1.Probe{rule(test.text, "no")},
			Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "Secret"}},
		}
		set := mustCompile(t, entry)
		trimmed := Trim(secret, set.Needs(gk))
		if got, _ := set.EvaluateTrimmed(trimmed, false); got.Status != test.want {
			t.Errorf("%s = %v on %s, want %s", test.text, got, trimmed, test.want)
		}
		for _, value := range []string{"c2VjcmV0", "b3RoZXI="} {
			if strings.Contains(string(trimmed), value) {
				t.Errorf("%s: the trimmed Secret holds a value: %s", test.text, trimmed)
			}
		}
	}
}
