package probes

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

// fuzzObjects are live objects in JSON.
func fuzzObjects(f *testing.F) []string {
	var out []string
	for _, text := range []string{
		deployment, `{apiVersion: v1, kind: Secret, metadata: {generation: 1}, data: {a: c2VjcmV0}, stringData: {b: x}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: {observedGeneration: 1}}`,
		`{apiVersion: apps/v1, kind: Deployment, status: {conditions: [{type: Available, status: "True", observedGeneration: 0}, 1], a: {b: [1, 1.5, null, {c: ""}]}}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {app: 1}}, spec: {replicas: 3, d: {e: {f: 1}}}, status: {conditions: {}}}`,
	} {
		raw, err := json.Marshal(yamltest.Decode(f, text))
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, string(raw))
	}

	return out
}

// parseObject reads an object as the API machinery does. It returns nil if text is not an object.
func parseObject(text string) map[string]any {
	obj := map[string]any{}
	if len(text) > 4<<10 || utiljson.Unmarshal([]byte(text), &obj) != nil || obj == nil {
		return nil
	}
	if _, ok := obj["metadata"].(map[string]any); !ok {
		obj["metadata"] = map[string]any{} // every object has metadata
	}
	return obj
}

// sentinel is the data of all Secrets. It must not turn up in a message.
const sentinel = "Zm9ydHktdHdv"

// checkVerdict judges an object by one probe three times: as it is, once more, and trimmed to the
// fields that the probe needs. The verdicts have to agree. No message is long or contains a
// Secret's value.
func checkVerdict(t *testing.T, probe corev1alpha1.Probe, obj map[string]any) {
	t.Helper()
	gk := groupKind(obj)
	entry := corev1alpha1.ObjectSetProbe{Probes: []corev1alpha1.Probe{probe}}
	entry.Selector.Kind = &corev1alpha1.PackageProbeKindSpec{Group: gk.Group, Kind: gk.Kind}
	set, err := Compile([]corev1alpha1.ObjectSetProbe{entry})
	if err != nil {
		checkRefusal(t, err)
		return
	}

	if isSecret(gk) {
		for _, key := range []string{"data", "stringData"} {
			if values, ok := obj[key].(map[string]any); ok {
				for name := range values {
					values[name] = sentinel
				}
			}
		}
	}

	before, _ := json.Marshal(obj)
	verdict := set.Evaluate(obj)
	checkResult(t, verdict)
	if isSecret(gk) && strings.Contains(verdict.Message(), sentinel) {
		t.Fatalf("%v quotes a Secret: %s", probe, verdict.Message())
	}
	if again := set.Evaluate(obj); !reflect.DeepEqual(verdict, again) {
		t.Fatalf("%v, then %v", verdict, again)
	}
	if after, _ := json.Marshal(obj); string(before) != string(after) {
		t.Fatalf("%s became %s", before, after)
	}

	trimmed, _ := set.EvaluateTrimmed(Trim(obj, set.Needs(gk)), false)
	if trimmed.Status != verdict.Status && !isSecret(gk) {
		t.Fatalf("%v is %v of %s and %v of %s", probe, verdict, before, trimmed, Trim(obj, set.Needs(gk)))
	}
	if isSecret(gk) && strings.Contains(string(Trim(obj, set.Needs(gk))), sentinel) {
		t.Fatalf("%s is kept", sentinel)
	}
}

func checkResult(t *testing.T, r Result) {
	t.Helper()
	if (r.Status == True) != (len(r.Messages) == 0) {
		t.Fatalf("%+v", r)
	}
	for _, m := range r.Messages {
		// The bound allows for the field's name twice, which is at most a jq expression, and for
		// two values.
		if len(m) > 4*limits.ProbeJQBytes+4*probeMessageValueBytes {
			t.Fatalf("a message of %d bytes: %s", len(m), m)
		}
	}
}

func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var all Errors
	if !errors.As(err, &all) || len(all) == 0 {
		t.Fatalf("%T", err)
	}
	for _, e := range all {
		if !strings.HasPrefix(e.Path, "availabilityProbes") || e.Problem == "" || e.Remedy == "" {
			t.Fatalf("%+v", e)
		}
	}
}

// FuzzFieldsEqual checks that any two fields of any object are compared, or reported as unreadable.
//
// Code: fields.go, trim.go, needs.go, object.go, result.go
func FuzzFieldsEqual(f *testing.F) {
	for _, obj := range fuzzObjects(f) {
		for _, pair := range [][2]string{{".status.updatedReplicas", ".status.replicas"}, {"..data.a.", "stringData.b"}, {"metadata", ".status.conditions"}, {".status.a.b[1]", "(1)"}, {"-", "/"}} {
			f.Add(pair[0], pair[1], obj)
		}
	}
	f.Fuzz(func(t *testing.T, a, b, object string) {
		obj := parseObject(object)
		if obj == nil || len(a)+len(b) > 512 {
			return
		}
		checkVerdict(t, fieldsEqual(a, b), obj)
	})
}

// FuzzCondition checks that a condition is evaluated for any status.
//
// Code: fields.go, object.go, result.go
func FuzzCondition(f *testing.F) {
	for _, obj := range fuzzObjects(f) {
		f.Add("Available", "True", obj)
		f.Add("Old", "", obj)
	}
	f.Fuzz(func(t *testing.T, conditionType, status, object string) {
		obj := parseObject(object)
		if obj == nil || len(conditionType)+len(status) > 512 {
			return
		}
		checkVerdict(t, condition(conditionType, status), obj)
	})
}

// FuzzCEL checks that every valid rule can be evaluated on every object.
//
// Code: cel.go, trim.go, needs.go
func FuzzCEL(f *testing.F) {
	objects := fuzzObjects(f)
	for i, text := range []string{
		"self.status.replicas == self.spec.replicas", "has(self.status.x) && self.status.x", "self.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')",
		"size(self.data) > 0 && self.data.a != ''", "self['metadata']['labels'].app.matches('w.b')", "int(self.data.a) == 1", "[1,2,3].all(x, [1,2,3].exists(y, x * y > 9))",
		"url('https://' + self.metadata.name).getHost() == 'x'", "'a-b'.find('[a-z]') == 'a'", "[1, 2].sum() == 3", "self.metadata.name.split('').map(x, x + x).join(',') == ''", "self == self", "self.spec.template.spec.containers[0].image.contains(':')",
		"dyn(self).status.a.b[5] == 1", "type(self.spec) == map", "self.status.?x == 1", "true", "self.a ? true : self.b",
	} {
		f.Add(text, "message", objects[i%len(objects)])
	}

	f.Fuzz(func(t *testing.T, text, message, object string) {
		obj := parseObject(object)
		if obj == nil || len(text) > 512 || len(message) > 512 {
			return
		}
		checkVerdict(t, rule(text, message), obj)
	})
}

// FuzzJQ checks that an expression is either refused or evaluated within its limits, and that it
// reads the same value from the trimmed object as from the whole one.
//
// Code: jq.go, jqguard.go, jqpaths.go
func FuzzJQ(f *testing.F) {
	for _, seed := range []string{
		".a", ".a[0].b", "[.[]|select(.x)]", "{a:.b}|.a", "..|numbers", ".a+1*2", ".status.conditions[]|select(.type==\"Available\").status", "[.status.a.b[]?]|length",
		"if .spec then .status else empty end", "try error(\"x\") catch .", ".metadata.labels|keys|join(\",\")", "(.spec.replicas|tostring)*9", ".status|to_entries|map(.key)|sort", ".[\"spec\"][\"replicas\"]//0",
		"\"\\(.spec)\"|ascii_downcase|ltrimstr(\"{\")|test(\"a\")", "[limit(3;repeat(1))]", "input", "$ENV", "now", "1e1000", ".a as $x|$x", "reduce .[] as $x (0;.+1)", "@base64 \"\\(.metadata.name)\"", ".spec.template.spec.containers|any(.image==\"a:1\")",
	} {
		f.Add(seed)
	}

	object := fuzzObjects(f)[0]
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 512 {
			return
		}
		field, err := newField(text)
		if err != nil {
			return
		}
		obj := parseObject(object)
		value, found, err := field.read(newObject(obj))
		// The trimmed object yields the same values as the whole one.
		var needs Needs
		needs.add(field.paths())
		trimmed := map[string]any{}
		require.NoError(t, utiljson.Unmarshal(Trim(obj, needs.normalised()), &trimmed))
		again, foundAgain, errAgain := field.read(newObject(trimmed))
		if found != foundAgain || (err == nil) != (errAgain == nil) || !cmp.Equal(value, again, cmpopts.EquateNaNs()) {
			t.Errorf("%q reads %v, %v, %v of the whole object and %v, %v, %v of %v", text, value, found, err, again, foundAgain, errAgain, trimmed)
		}
		if raw, err := json.Marshal(value); err == nil && len(raw) > 8*limits.ProbeJQWork {
			t.Errorf("%q is of %d bytes", text, len(raw))
		}
	})
}
