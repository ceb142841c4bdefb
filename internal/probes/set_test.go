package probes

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

var deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// entryFor probes apps Deployments.
func entryFor(probes ...corev1alpha1.Probe) corev1alpha1.ObjectSetProbe {
	return corev1alpha1.ObjectSetProbe{
		Probes: probes,
		Selector: corev1alpha1.ProbeSelector{
			Kind: &corev1alpha1.PackageProbeKindSpec{Group: deploymentKind.Group, Kind: deploymentKind.Kind},
		},
	}
}

func condition(conditionType, status string) corev1alpha1.Probe {
	return corev1alpha1.Probe{Condition: &corev1alpha1.ProbeConditionSpec{Type: conditionType, Status: status}}
}

func fieldsEqual(a, b string) corev1alpha1.Probe {
	return corev1alpha1.Probe{FieldsEqual: &corev1alpha1.ProbeFieldsEqualSpec{FieldA: a, FieldB: b}}
}

func rule(text, message string) corev1alpha1.Probe {
	return corev1alpha1.Probe{CEL: &corev1alpha1.ProbeCELSpec{Rule: text, Message: message}}
}

func mustCompile(t testing.TB, entries ...corev1alpha1.ObjectSetProbe) *Set {
	t.Helper()
	set, err := Compile(entries)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return set
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, generation: 3, labels: {app: web}}
spec: {replicas: 2, template: {spec: {containers: [{name: web, image: "a:1"}]}}}
status:
  observedGeneration: 3
  replicas: 2
  updatedReplicas: 1
  conditions:
  - {type: Available, status: "True"}
  - {type: Progressing, status: "False", observedGeneration: 3}
  - {type: Old, status: "True", observedGeneration: 2}
  - {type: Available, status: "False"}
`

// The probes of these tests are of Deployments.
const failedJob = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: migrate, namespace: shop}
status:
  conditions:
  - {type: FailureTarget, status: "True", reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}
  - {type: Failed, status: "True", reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}
`

func TestEvaluate(t *testing.T) {
	t.Parallel()
	failed := func(messages ...string) Result { return Result{Status: False, Messages: messages} }
	unknown := func(messages ...string) Result { return Result{Status: Unknown, Messages: messages} }
	tests := []struct {
		reason string
		object string
		probes []corev1alpha1.Probe
		want   Result
	}{
		{"no probe", deployment, nil, Result{Status: True}},
		{"an entry with no check is skipped", deployment, []corev1alpha1.Probe{{}}, Result{Status: True}},
		{"condition as wanted; the first of a type wins", deployment,
			[]corev1alpha1.Probe{condition("Available", "True")}, Result{Status: True}},
		{"the status of a condition defaults to True", deployment,
			[]corev1alpha1.Probe{condition("Available", "")}, Result{Status: True}},
		{"condition differs", deployment, []corev1alpha1.Probe{condition("Progressing", "True")},
			Result{Status: False, Messages: []string{`.status.condition["Progressing"] is False`}, ConditionFalse: true}},
		{"status is compared with case", deployment, []corev1alpha1.Probe{condition("Available", "true")},
			Result{Status: False, Messages: []string{`.status.condition["Available"] is True`}, ConditionFalse: true}},
		{"condition missing", deployment, []corev1alpha1.Probe{condition("Ready", "True")},
			unknown(`missing .status.condition["Ready"]`)},
		{"condition that a failed Job never gets", failedJob, []corev1alpha1.Probe{condition("Complete", "True")},
			unknown("has failed: BackoffLimitExceeded: Job has reached the specified backoff limit")},
		{"condition of an earlier generation", deployment, []corev1alpha1.Probe{condition("Old", "True")},
			Result{Messages: []string{`.status.condition["Old"] outdated`}, Outdated: true}},
		{"no conditions", `{apiVersion: apps/v1, kind: Deployment, status: {}}`,
			[]corev1alpha1.Probe{condition("Ready", "True")}, unknown("missing .status.conditions")},
		{"conditions are null, as in a new definition", `{apiVersion: apps/v1, kind: Deployment, status: {conditions: null}}`,
			[]corev1alpha1.Probe{condition("Ready", "True")}, unknown("missing .status.conditions")},
		{"the same is missing for several probes", `{apiVersion: apps/v1, kind: Deployment}`,
			[]corev1alpha1.Probe{condition("Ready", "True"), condition("Available", "True")}, unknown("missing .status.conditions")},
		{"no status", `{apiVersion: apps/v1, kind: Deployment}`,
			[]corev1alpha1.Probe{condition("Ready", "True")}, unknown("missing .status.conditions")},
		{"conditions are a map", `{apiVersion: apps/v1, kind: Deployment, status: {conditions: {}}}`,
			[]corev1alpha1.Probe{condition("Ready", "True")}, unknown("malformed .status.conditions")},
		{"malformed before the type", `{apiVersion: apps/v1, kind: Deployment, status: {conditions: [x, {type: Ready, status: "True"}]}}`,
			[]corev1alpha1.Probe{condition("Ready", "True")}, unknown("malformed .status.conditions")},
		{"malformed after the type", `{apiVersion: apps/v1, kind: Deployment, status: {conditions: [{type: Ready, status: "True"}, x]}}`,
			[]corev1alpha1.Probe{condition("Ready", "True")}, Result{Status: True}},

		{"status of an earlier generation", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2},
			status: {observedGeneration: 1, conditions: [{type: Ready, status: "False"}]}}`,
			[]corev1alpha1.Probe{condition("Ready", "True")}, Result{Messages: []string{".status outdated"}, Outdated: true}},
		{"an observedGeneration that is not an integer is ignored",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: {observedGeneration: "1", a: 1}}`,
			[]corev1alpha1.Probe{fieldsEqual(".status.a", ".status.a")}, Result{Status: True}},

		{"equal fields", deployment, []corev1alpha1.Probe{fieldsEqual(".spec.replicas", "status.replicas")}, Result{Status: True}},
		{"dots around a path are trimmed", deployment,
			[]corev1alpha1.Probe{fieldsEqual("..spec.replicas.", ".status.replicas")}, Result{Status: True}},
		{"different fields", deployment, []corev1alpha1.Probe{fieldsEqual(".spec.replicas", ".status.updatedReplicas")},
			failed(`".spec.replicas" is 2, ".status.updatedReplicas" is 1`)},
		{"missing field", deployment, []corev1alpha1.Probe{fieldsEqual(".spec.replicas", ".status.readyReplicas")},
			failed(`".status.readyReplicas" missing`)},
		{"both missing is not equal", deployment, []corev1alpha1.Probe{fieldsEqual(".spec.x", ".spec.x")}, failed(`".spec.x" missing`)},
		{"a path through a list is missing", deployment, []corev1alpha1.Probe{fieldsEqual(".status.conditions.0", ".spec.replicas")},
			failed(`".status.conditions.0" missing`)},
		{"whole and broken numbers differ", `{apiVersion: apps/v1, kind: Deployment, a: 1, b: 1.5}`,
			[]corev1alpha1.Probe{fieldsEqual("a", "b")}, failed(`"a" is 1, "b" is 1.5`)},
		{"maps are compared whole", `{apiVersion: apps/v1, kind: Deployment, a: {x: [1, {y: 2}]}, b: {x: [1, {y: 2}]}}`,
			[]corev1alpha1.Probe{fieldsEqual("a", "b")}, Result{Status: True}},
		{"empty lists and maps are equal to their like", `{apiVersion: apps/v1, kind: Deployment, a: {x: []}, b: {x: []}}`,
			[]corev1alpha1.Probe{fieldsEqual("a", "b")}, Result{Status: True}},

		{"jq index", deployment, []corev1alpha1.Probe{fieldsEqual(`.spec.template.spec.containers[0].name`, ".metadata.labels.app")},
			Result{Status: True}},
		{"jq selection", deployment,
			[]corev1alpha1.Probe{fieldsEqual(`.status.conditions[] | select(.type == "Progressing") | .status`, `"False"`)},
			Result{Status: True}},
		{"jq arithmetic gives the numbers of JSON", deployment,
			[]corev1alpha1.Probe{fieldsEqual(`.status.updatedReplicas * 4 / 2`, ".spec.replicas")}, Result{Status: True}},
		{"jq default for a field that is left out", deployment,
			[]corev1alpha1.Probe{fieldsEqual(`.status.unavailableReplicas // 0`, "(0)")}, Result{Status: True}},
		{"jq differs", deployment, []corev1alpha1.Probe{fieldsEqual(`.status.conditions | length`, ".spec.replicas")},
			failed(`".status.conditions | length" is 4, ".spec.replicas" is 2`)},
		{"jq null is missing", deployment, []corev1alpha1.Probe{fieldsEqual(`.status.x?`, ".spec.replicas")}, failed(`".status.x?" missing`)},
		{"jq without a value is missing", deployment, []corev1alpha1.Probe{fieldsEqual(`.status.conditions[] | select(.type == "X")`, ".spec.replicas")},
			failed(`".status.conditions[] | select(.type == \"X\")" missing`)},
		{"jq with several values", deployment, []corev1alpha1.Probe{fieldsEqual(`.status.conditions[]`, ".spec.replicas")},
			unknown(`jq failed: ".status.conditions[]": yields more than one value`)},
		{"jq that fails", deployment, []corev1alpha1.Probe{fieldsEqual(`.spec.replicas[0]`, ".spec.replicas")},
			unknown(`jq failed: ".spec.replicas[0]": expected an array but got: number (2)`)},

		{"rule is true", deployment, []corev1alpha1.Probe{rule(`self.spec.replicas == 2`, "not two")}, Result{Status: True}},
		{"rule is false", deployment, []corev1alpha1.Probe{rule(`self.spec.replicas == 3`, "not three")}, failed("not three")},
		{"rule fails", deployment, []corev1alpha1.Probe{rule(`self.status.x == 3`, "")}, unknown("CEL program failed: no such key: x, in the rule self.status.x == 3")},
		{"library of strings", deployment, []corev1alpha1.Probe{rule(`self.metadata.name.replace("w", "d") == "deb"`, "")}, Result{Status: True}},
		{"library of lists", deployment, []corev1alpha1.Probe{rule(`[1, 2, 3].isSorted()`, "")}, Result{Status: True}},
		{"library of expressions", deployment, []corev1alpha1.Probe{rule(`self.metadata.name.find("[e]") == "e"`, "")}, Result{Status: True}},
		{"library of URLs", deployment, []corev1alpha1.Probe{rule(`url("https://a.b/c").getHost() == "a.b"`, "")}, Result{Status: True}},
		{"rule at its cost limit", deployment,
			[]corev1alpha1.Probe{rule(`[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f+self.spec.replicas > 0))))))`, "")},
			unknown("CEL program failed: actual cost limit exceeded: the limit is 1000000, in the rule " +
				"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4…")},

		{"all Unknown and no False messages; a False condition is still reported", deployment,
			[]corev1alpha1.Probe{condition("Progressing", "True"), condition("Ready", "True"),
				rule("self.spec.replicas == 3", "no"), rule("self.y == 1", "")},
			Result{Status: Unknown, ConditionFalse: true, Messages: []string{
				`missing .status.condition["Ready"]`, "CEL program failed: no such key: y, in the rule self.y == 1"}}},
		{"all False messages", deployment,
			[]corev1alpha1.Probe{condition("Progressing", "True"), condition("Available", "True"), rule("self.spec.replicas == 3", "no")},
			Result{Status: False, ConditionFalse: true, Messages: []string{`.status.condition["Progressing"] is False`, "no"}}},
		{"fieldsEqual before condition before cel", deployment,
			[]corev1alpha1.Probe{
				{FieldsEqual: fieldsEqual("spec.replicas", "spec.replicas").FieldsEqual, Condition: condition("No", "").Condition, CEL: rule("(", "").CEL},
				{Condition: condition("Available", "").Condition, CEL: rule("(", "").CEL},
			}, Result{Status: True}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			set := mustCompile(t, entryFor(test.probes...))
			obj := yamltest.Decode(t, test.object)
			got := set.Evaluate(obj)
			require.Equal(t, test.want, got, "Evaluate")
			require.Equal(t, yamltest.Decode(t, test.object), obj, "Evaluate changed the object")
			trimmed := Trim(obj, set.Needs(deploymentKind))
			judged, _ := set.EvaluateTrimmed(trimmed, false)
			require.Equal(t, test.want, judged, fmt.Sprintf("EvaluateTrimmed of the object %s", trimmed))
		})
	}
}

func TestEvaluateBeforeTheController(t *testing.T) {
	t.Parallel()
	outdated := Result{Messages: []string{".status outdated"}, Outdated: true}
	tests := []struct {
		reason, object string
		want           Result
	}{
		{"all counters of a new object are equal", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {a: 0, b: 0}}`, outdated},
		{"missing fields of the probes are reported first", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}}`,
			Result{Status: False, Messages: []string{`".status.a" missing`}}},
		{"of the core group", `{apiVersion: v1, kind: ReplicationController, metadata: {generation: 1}, status: {a: 0, b: 0}}`, outdated},
		{"a budget counts pods, too", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 1}, status: {a: 0, b: 0}}`, outdated},
		{"the controller has acted", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {observedGeneration: 1, a: 0, b: 0}}`, Result{Status: True}},
		{"a kind whose controller leaves the field empty",
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {generation: 1}, status: {a: 0, b: 0}}`, Result{Status: True}},
		{"a kind without the field", `{apiVersion: batch/v1, kind: Job, metadata: {generation: 1}, status: {a: 0, b: 0}}`, Result{Status: True}},
		{"a custom kind of the same name", `{apiVersion: apps.kruise.io/v1, kind: StatefulSet, metadata: {generation: 1}, status: {a: 0, b: 0}}`, Result{Status: True}},
	}

	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			obj := yamltest.Decode(t, test.object)
			gk := groupKind(obj)
			entry := entryFor(fieldsEqual(".status.a", ".status.b"))
			entry.Selector.Kind.Group, entry.Selector.Kind.Kind = gk.Group, gk.Kind
			set := mustCompile(t, entry)
			judged, _ := set.EvaluateTrimmed(Trim(obj, set.Needs(gk)), false)
			for how, got := range map[string]Result{"Evaluate": set.Evaluate(obj), "EvaluateTrimmed": judged} {
				require.Equal(t, test.want, got, how)
			}
		})
	}
}

func TestEvaluateSelects(t *testing.T) {
	t.Parallel()
	never := rule("false", "never")
	byLabel := entryFor(never)
	byLabel.Selector.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	noLabels := entryFor(never)
	noLabels.Selector.Selector = &metav1.LabelSelector{}
	tests := []struct {
		reason string
		entry  corev1alpha1.ObjectSetProbe
		object string
		want   Status
	}{
		{"group and kind", entryFor(never), `{apiVersion: apps/v1, kind: Deployment}`, False},
		{"another version", entryFor(never), `{apiVersion: apps/v1beta1, kind: Deployment}`, False},
		{"another group", entryFor(never), `{apiVersion: extensions/v1, kind: Deployment}`, True},
		{"the core group", entryFor(never), `{apiVersion: v1, kind: Deployment}`, True},
		{"another kind", entryFor(never), `{apiVersion: apps/v1, kind: DaemonSet}`, True},
		{"labels match", byLabel, `{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {app: web, x: y}}}`, False},
		{"labels do not match", byLabel, `{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {app: db}}}`, True},
		{"no labels", byLabel, `{apiVersion: apps/v1, kind: Deployment}`, True},
		{"an empty label selector selects all", noLabels, `{apiVersion: apps/v1, kind: Deployment}`, False},
		{"labels come before an outdated status", byLabel,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: {observedGeneration: 1}}`, True},
	}

	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			if got := mustCompile(t, test.entry).Evaluate(yamltest.Decode(t, test.object)); got.Status != test.want {
				t.Errorf("Evaluate = %v, want %s", got, test.want)
			}
		})
	}
}

func TestEvaluateWithoutSet(t *testing.T) {
	t.Parallel()
	var set *Set
	if got := set.Evaluate(yamltest.Decode(t, deployment)); got.Status != True {
		t.Errorf("Evaluate of a nil Set = %v, want True", got)
	}
	if set.Selects(deploymentKind) {
		t.Error("a nil Set selects Deployments")
	}
	if got, _ := mustCompile(t, entryFor()).EvaluateTrimmed([]byte("{"), false); got.Status != Unknown {
		t.Errorf("EvaluateTrimmed of a broken object = %v, want Unknown", got)
	}
}

func TestCompileErrors(t *testing.T) {
	t.Parallel()
	broken := entryFor(
		rule("self.ready", ""), rule("slef.x == 1", ""), fieldsEqual("", ".a | now"), rule("self.x ==", ""), fieldsEqual("a", "b"))
	broken.Selector.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	var missing corev1alpha1.ObjectSetProbe
	_, err := Compile([]corev1alpha1.ObjectSetProbe{entryFor(), broken, missing})
	var errs Errors
	if !errors.As(err, &errs) {
		t.Fatalf("Compile = %v, want Errors", err)
	}

	var got []string
	for _, e := range errs {
		if e.Problem == "" || e.Remedy == "" {
			t.Errorf("%s has no problem or no remedy", e.Path)
		}
		got = append(got, e.Path)
	}

	want := []string{
		"availabilityProbes[1].selector.selector",
		"availabilityProbes[1].probes[0].cel.rule",
		"availabilityProbes[1].probes[1].cel.rule",
		"availabilityProbes[1].probes[2].fieldsEqual.fieldA",
		"availabilityProbes[1].probes[2].fieldsEqual.fieldB",
		"availabilityProbes[1].probes[3].cel.rule",
		"availabilityProbes[2].selector.kind",
	}

	require.Equal(t, want, got, "paths")
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the message has several lines: %q", err)
	}

	const dyn = "availabilityProbes[1].probes[0].cel.rule: the type of the rule is dyn, not bool " +
		"(compare the value, e.g. self.status.ready == true)"

	require.Equal(t, dyn, errs[1].Error(), "error")
}

func TestCompileLimits(t *testing.T) {
	t.Parallel()
	many := make([]corev1alpha1.Probe, 1001)
	long := rule("self.x == 1"+strings.Repeat(" ", 16<<10), "")
	for name, entry := range map[string]corev1alpha1.ObjectSetProbe{
		"the limit is 1000": entryFor(many...), "the limit is 16384": entryFor(long),
		"the limit is 2048": entryFor(fieldsEqual(".x"+strings.Repeat(" ", 2<<10), "x")),
	} {
		if _, err := Compile([]corev1alpha1.ObjectSetProbe{entry}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Compile = %v, want an error with %q", err, name)
		}
	}
}

func TestSecretsAreNeverQuoted(t *testing.T) {
	t.Parallel()
	values := []string{"c2VjcmV0", "b3RoZXI="}
	for kind, exposes := range map[string]bool{"Secret": false, "ConfigMap": true} {
		obj := yamltest.Decode(t, `{apiVersion: v1, kind: `+kind+`, data: {a: c2VjcmV0, b: b3RoZXI=}}`)
		for _, one := range []corev1alpha1.Probe{
			fieldsEqual("data.a", "data.b"), fieldsEqual(".data.a | .[0]", "x"), rule("int(self.data.a) == 1", "no number"),
			rule("self.data.c == self.data.a", ""), fieldsEqual(".data.a + .data.b", ".data.b + .data.a"),
		} {
			set := mustCompile(t, corev1alpha1.ObjectSetProbe{
				Probes:   []corev1alpha1.Probe{one},
				Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: kind}},
			})
			trimmed := Trim(obj, set.Needs(groupKind(obj)))
			results := []Result{set.Evaluate(obj)}
			if exposes {
				results = nil
			}
			trimmedResult, _ := set.EvaluateTrimmed(trimmed, exposes)
			for _, got := range append(results, trimmedResult) {
				if got.Status == True {
					t.Errorf("probe %v is true", one)
				}
				for _, value := range values {
					if strings.Contains(got.Message(), value) {
						t.Errorf("the message quotes the %s: %s", kind, got.Message())
					}
				}
			}
		}
	}
}

// TestProgramsAreShared checks that a thousand packages with equal probes share one program, which
// is collected with the last Set that uses it.
func TestProgramsAreShared(t *testing.T) {
	t.Parallel()
	const text = "self.shared.by.many == true"
	first, second := mustCompile(t, entryFor(rule(text, "a"))), mustCompile(t, entryFor(rule(text, "b")))
	program := func(s *Set) *celProgram { return s.entries[deploymentKind][0].probes[0].(celProbe).celProgram }
	if program(first) != program(second) {
		t.Error("two Sets with the same rule do not share its program")
	}

	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
	deadline := time.Now().Add(time.Minute)
	for held := true; held; {
		runtime.GC()
		celPrograms.mu.Lock()
		_, held = celPrograms.byText[text]
		celPrograms.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatal("the program is kept after the last Set was dropped")
		}
	}
}

// TestEvaluatePhase checks that only Available=True for the present generation counts.
func TestEvaluatePhase(t *testing.T) {
	t.Parallel()
	const status = `{"metadata":{"generation":3},"status":{"conditions":[{"type":"Paused","status":"True","observedGeneration":3},` +
		`{"type":"Available","status":"%","observedGeneration":#,"message":"@"}]}}`

	with := func(is, generation, message string) string {
		text := []byte{}
		for _, c := range []byte(status) {
			switch c {
			case '%':
				text = append(text, is...)
			case '#':
				text = append(text, generation...)
			case '@':
				text = append(text, message...)
			default:
				text = append(text, c)
			}
		}
		return string(text)
	}

	for name, tc := range map[string]struct {
		phase string
		want  Result
	}{
		"no agent":        {`{"metadata":{"generation":1}}`, Result{Messages: []string{`no status reported by the agent of class "far": is it running?`}}},
		"malformed":       {`{"status":{"conditions":7}}`, Result{Messages: []string{"malformed status"}}},
		"available":       {with("True", "3", ""), Result{Status: True}},
		"outdated":        {with("True", "2", ""), Result{Outdated: true, Messages: []string{`the agent of class "far" has not reported on its last change yet`}}},
		"not available":   {with("False", "3", `Phase \"deploy\" failed: ConfigMap shop/a: not ready`), Result{Status: False, Messages: []string{"ConfigMap shop/a: not ready"}}},
		"several lines":   {with("False", "3", `Phase \"deploy\"\nComplete: false\n\tObject a`), Result{Status: False, Messages: []string{`Phase "deploy" Complete: false Object a`}}},
		"without message": {with("Unknown", "3", ""), Result{Status: False, Messages: []string{"is not available"}}},
	} {
		require.Equal(t, tc.want, EvaluatePhase([]byte(tc.phase), "far"), name)
	}
}
