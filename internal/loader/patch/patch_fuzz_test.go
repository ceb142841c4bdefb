package patch

import (
	"encoding/json"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/fuzzing"
	"lockstep.run/lockstep/test/require"
)

// fuzzSecret is a value of the object. Messages must not quote it.
const fuzzSecret = "geheim-geheim"

const fuzzObject = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","labels":{"app":"web"},"annotations":{"a":"` + fuzzSecret + `"}},
"spec":{"replicas":2,"ratio":0.5,"paused":false,"none":null,"template":{"spec":{"containers":[{"name":"web","image":"a:1","env":[{"name":"X","value":"` + fuzzSecret + `"}]},{"name":"side"}],"tolerations":[{"key":"k"}]}}}}`

// FuzzPatch checks that every patch is either refused without quoting the object, or changes the
// object within the limits. Two attempts give the same result, and the identity of the object never
// changes.
//
// Code: patch.go, apply.go, target.go
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		"spec: {replicas: 3, template: {spec: {containers: [{name: web, image: 'b:2', env: [{name: X, $patch: delete}]}, {name: new}]}}}", "$patch: delete", "$patch: replace\nspec: {}", "metadata: {name: other, labels: null}",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {paused: true}", "- {op: add, path: /metadata/labels/x~1y, value: 'z'}\n- {op: test, path: /spec/replicas, value: 2}\n- {op: remove, path: /spec/none}",
		"- {op: copy, from: /spec, path: /spec/copy}\n- {op: move, from: /spec/ratio, path: /metadata/labels/r}\n- {op: replace, path: '', value: []}", "- {op: add, path: /spec/template/spec/containers/-, value: {name: x}}\n- {op: remove, path: /spec/template/spec/containers/9}",
		"spec: {template: {spec: {containers: [{name: web, $setElementOrder/env: [X]}], $setElementOrder/containers: [{name: side}, {name: web}], $retainKeys: [containers]}}}", "a: 1\n---\nb: 2", "[]", "text", "- {op: test, path: /metadata/annotations/a, value: x}", "spec: {replicas: [1], $deleteFromPrimitiveList/x: [1]}",
		"metadata: 1", "{}", "spec: {tolerations: [{$patch: replace}]}",
	} {
		f.Add(seed, "", "Deployment", "w.*", "app=web")
		f.Add(seed, "apps", "", "", "")
	}

	f.Fuzz(func(t *testing.T, text, group, kind, name, selector string) {
		if len(text) > 2<<10 || len(group)+len(kind)+len(name)+len(selector) > 512 {
			return
		}
		target := Target{Group: group, Kind: kind, Name: name, LabelSelector: selector}
		first, said := patched(t, text, target)
		again, saidAgain := patched(t, text, target)
		if first != again || said != saidAgain {
			t.Fatalf("%s %s, then %s %s", first, said, again, saidAgain)
		}
	})
}

// patched patches the object, and returns the outcome or the message.
func patched(t *testing.T, text string, target Target) (outcome, said string) {
	t.Helper()
	set, problems := Compile([]Patch{{Target: target, Patch: text}})
	if len(problems) > 0 {
		return "", checkProblem(t, problems[0])
	}

	obj := map[string]any{}
	require.NoError(t, utiljson.Unmarshal([]byte(fuzzObject), &obj))
	out, _, problem := set.Apply(obj)
	if problem != nil {
		return "", checkProblem(t, problem)
	}
	if out == nil {
		return "left out", ""
	}

	raw, err := json.Marshal(out)
	if err != nil || len(raw) > 4*limits.ObjectBytes {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}

	metadata, _ := out["metadata"].(map[string]any)
	if out["apiVersion"] != "apps/v1" || out["kind"] != "Deployment" || metadata["name"] != "web" || metadata["namespace"] != "shop" {
		t.Fatalf("the patch renames the object: %s", raw)
	}

	return string(raw), ""
}

func checkProblem(t *testing.T, p *Problem) string {
	t.Helper()
	if p.Source == "" || p.Details == "" {
		t.Fatalf("%+v", p)
	}
	fuzzing.CheckViolations(t, violation.Violations{{Reason: violation.ReasonLimit, Field: p.Part, Details: p.Details}}, fuzzSecret)
	return p.Error()
}
