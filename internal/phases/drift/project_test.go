package drift

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

var deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

const deployment = `
metadata:
  name: web
  namespace: shop
  labels: {app: web, package-operator.run/cache: "True"}
  annotations: {package-operator.run/revision: "1", note: a}
  ownerReferences:
  - {apiVersion: package-operator.run/v1alpha1, kind: ObjectDeployment, name: shop, uid: u1, controller: true}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers:
      - {name: first, image: "init:1"}
      - {name: second, image: "init:2"}
      containers:
      - name: web
        image: web:1
        args: [a, b]
        env:
        - {name: A, value: "1"}
        - {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        ports: [{containerPort: 80, name: http}]
        resources: {}
        securityContext: {}
        volumeMounts: [{name: tmp, mountPath: /tmp}]
      nodeSelector: {disk: fast}
      volumes: [{name: tmp, emptyDir: {}}]
`

// defaulted adds the API server's defaults to the Deployment.
func defaulted(obj map[string]any) {
	spec := obj["spec"].(map[string]any)
	spec["progressDeadlineSeconds"] = int64(600)
	pod := spec["template"].(map[string]any)["spec"].(map[string]any)
	pod["restartPolicy"] = "Always"
	for _, field := range []string{"initContainers", "containers"} {
		for _, container := range pod[field].([]any) {
			container.(map[string]any)["imagePullPolicy"] = "IfNotPresent"
		}
	}
	container := pod["containers"].([]any)[0].(map[string]any)
	container["ports"].([]any)[0].(map[string]any)["protocol"] = "TCP"
	container["env"].([]any)[1].(map[string]any)["valueFrom"].(map[string]any)["fieldRef"].(map[string]any)["apiVersion"] = "v1"
}

func podSpec(t testing.TB, obj map[string]any) map[string]any {
	t.Helper()
	return fieldsAt(t, obj, "spec", "template", "spec")
}

// TestProjectDeployment changes a Deployment by the API server's own rules and checks the engine's
// verdict.
func TestProjectDeployment(t *testing.T) {
	t.Parallel()
	const pod = "/spec/template/spec"
	for _, test := range []struct {
		reason, patch string // a JSON patch
		drift         bool
	}{
		{"nothing", `[]`, false},
		{"status", `[{op: add, path: /status, value: {replicas: 2}}]`, false},
		{"labels and annotations of others", `[{op: add, path: /metadata/labels/other, value: x}, {op: add, path: /metadata/annotations/example.com~1revision, value: "3"}]`, false},
		{"what the API server sets in metadata",
			`[{op: add, path: /metadata/generation, value: 7}, {op: add, path: /metadata/resourceVersion, value: "77"}, {op: add, path: /metadata/finalizers, value: [other/finalizer]}]`, false},
		{"the revision annotation", `[{op: replace, path: /metadata/annotations/package-operator.run~1revision, value: "9"}]`, false},
		{"an owner reference of others", `[{op: add, path: /metadata/ownerReferences/0, value: {apiVersion: v1, kind: A, name: a, uid: u2}}]`, false},
		{"version and blockOwnerDeletion of the controller reference",
			`[{op: replace, path: /metadata/ownerReferences/0/apiVersion, value: package-operator.run/v1beta1}, {op: add, path: /metadata/ownerReferences/0/blockOwnerDeletion, value: true}]`, false},
		{"a field that the template omits", `[{op: add, path: /spec/minReadySeconds, value: 3}]`, false},
		{"containers of others, around ours", `[{op: add, path: POD/containers/0, value: {name: sidecar, image: x}}, {op: add, path: POD/containers/-, value: {name: agent, image: x}}]`, false},
		{"init containers of others, between ours", `[{op: add, path: POD/initContainers/1, value: {name: inject, image: x}}]`, false},
		{"variables, mounts and volumes of others",
			`[{op: add, path: POD/containers/0/env/0, value: {name: C, value: x}}, {op: add, path: POD/containers/0/volumeMounts/0, value: {name: token, mountPath: /token}},
			{op: add, path: POD/volumes/1, value: {name: token, emptyDir: {}}}]`, false},
		{"the same port with another protocol", `[{op: add, path: POD/containers/0/ports/0, value: {containerPort: 80, protocol: UDP, name: quic}}]`, false},

		{"a number", `[{op: replace, path: /spec/replicas, value: 3}]`, true},
		{"a field taken off", `[{op: remove, path: /spec/replicas}]`, true},
		{"another type", `[{op: replace, path: /spec/replicas, value: "2"}]`, true},
		{"our cache label taken off", `[{op: remove, path: /metadata/labels/package-operator.run~1cache}]`, true},
		{"an annotation of ours", `[{op: remove, path: /metadata/annotations/note}]`, true},
		{"our controller reference taken off", `[{op: remove, path: /metadata/ownerReferences}]`, true},
		{"our reference not the controller any more", `[{op: replace, path: /metadata/ownerReferences/0/controller, value: false}]`, true},
		{"an image", `[{op: replace, path: POD/containers/0/image, value: "web:2"}]`, true},
		{"arguments in another order", `[{op: replace, path: POD/containers/0/args, value: [b, a]}]`, true},
		{"a container taken off", `[{op: remove, path: POD/initContainers/0}]`, true},
		{"init containers in another order", `[{op: move, from: POD/initContainers/0, path: POD/initContainers/1}]`, true},
		{"a variable's value", `[{op: replace, path: POD/containers/0/env/0/value, value: "2"}]`, true},
		{"a key added to a selector, which is owned as a whole", `[{op: add, path: /spec/selector/matchLabels/track, value: x}]`, true},
		{"a key added to a node selector", `[{op: add, path: POD/nodeSelector/zone, value: x}]`, true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, "apis__apps__v1.json", deploymentKind)
			template := c.object(deployment).Object
			c.apply("package-operator", deployment)
			c.update("apiserver", defaulted)
			baseline := copyOf(c.live().Object)
			if !Matches(apinames.Default, template, baseline, c.known()) {
				t.Fatal("the content just applied does not match")
			}
			before := Project(apinames.Default, template, baseline, c.known())

			changed := patchedBy(t, baseline, strings.ReplaceAll(test.patch, "POD", pod))
			// The API server cannot return types that its schema refuses.
			if test.reason != "another type" {
				c.update("other", func(obj map[string]any) {
					clear(obj)
					maps.Copy(obj, changed)
				})
				changed = c.live().Object
			}
			after := Project(apinames.Default, template, changed, c.known())
			require.Equal(t, test.drift, before != after, "drift")
			if matches := Matches(apinames.Default, template, changed, c.known()); matches == test.drift {
				t.Errorf("Matches = %t, want %t", matches, !test.drift)
			}
			require.Equal(t, before, Project(apinames.Default, template, baseline, c.known()), "learning from the change alters the projection of the baseline")
			if test.drift && test.reason != "another type" {
				c.apply("package-operator", deployment)
				c.update("apiserver", defaulted)
				if Project(apinames.Default, template, c.live().Object, c.known()) != before {
					t.Error("an apply does not bring the projection back")
				}
			}
		})
	}
}

// patchedBy returns a changed copy of an object.
func patchedBy(t *testing.T, obj map[string]any, text string) map[string]any {
	t.Helper()
	before, err := json.Marshal(obj)
	require.NoError(t, err)
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	patch, err := jsonpatch.DecodePatch(raw)
	require.NoError(t, err)
	after, err := patch.Apply(before)
	require.NoError(t, err)
	return yamltest.Decode(t, string(after))
}

func TestProjectWithoutListTypes(t *testing.T) {
	t.Parallel()
	template := yamltest.Decode(t, `{spec: {list: [{name: a}], map: {x: 1}}}`)
	live := yamltest.Decode(t, `{spec: {list: [{name: a, more: 1}], map: {x: 1, y: 2}}}`)
	if !Matches(apinames.Default, template, live, nil) {
		t.Error("elements of the same number that match do not match")
	}

	more := yamltest.Decode(t, `{spec: {list: [{name: a, more: 1}, {name: b}], map: {x: 1, y: 2}}}`)
	if Matches(apinames.Default, template, more, nil) || Project(apinames.Default, template, more, nil) == Project(apinames.Default, template, live, nil) {
		t.Error("an element that was added to an unknown list is not drift")
	}

	other := yamltest.Decode(t, `{spec: {list: [{name: a, more: 1}], map: {x: 1, z: 2}}}`)
	if Project(apinames.Default, template, other, nil) != Project(apinames.Default, template, live, nil) {
		t.Error("a key that was added to an unknown map is drift")
	}
}

// TestProjectEmptyMaps covers empty maps, which can be an alternative of a union, such as emptyDir:
// {}.
func TestProjectEmptyMaps(t *testing.T) {
	t.Parallel()
	template := yamltest.Decode(t, `{spec: {volumes: [{name: v, emptyDir: {}}]}}`)
	states := []string{
		`{spec: {volumes: [{name: v, emptyDir: {}}]}}`,
		`{spec: {volumes: [{name: v}]}}`,
		`{spec: {volumes: [{name: v, emptyDir: {medium: Memory}}]}}`,
		`{spec: {volumes: [{name: v, hostPath: {path: /}}]}}`,
	}

	kept := Project(apinames.Default, template, yamltest.Decode(t, states[0]), nil)
	for i, state := range states {
		live := yamltest.Decode(t, state)
		require.Equal(t, (i > 0), Project(apinames.Default, template, live, nil) != kept, fmt.Sprintf("%s: drift", state))
		require.Equal(t, (i == 0), Matches(apinames.Default, template, live, nil), fmt.Sprintf("%s: Matches", state))
	}
}

// TestProjectEmptyKinds checks that an empty list that became an empty map has drifted.
func TestProjectEmptyKinds(t *testing.T) {
	t.Parallel()
	list, object := yamltest.Decode(t, `{spec: {a: []}}`), yamltest.Decode(t, `{spec: {a: {}}}`)
	for _, pair := range [][2]map[string]any{{list, object}, {object, list}} {
		template, live := pair[0], pair[1]
		if Project(apinames.Default, template, live, nil) == Project(apinames.Default, template, template, nil) || Matches(apinames.Default, template, live, nil) {
			t.Errorf("%v counts as %v", live, template)
		}
	}
}

// TestProjectImpliedKeys checks that a template without a protocol means TCP.
func TestProjectImpliedKeys(t *testing.T) {
	t.Parallel()
	types := LearnListTypes([]metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:ports":{"k:{\"port\":53,\"protocol\":\"TCP\"}":{".":{}}}}}`)}})
	template := yamltest.Decode(t, `{spec: {ports: [{name: dns, port: 53}]}}`)
	tcp := yamltest.Decode(t, `{spec: {ports: [{name: dns, port: 53, protocol: TCP}]}}`)
	udp := yamltest.Decode(t, `{spec: {ports: [{name: dns, port: 53, protocol: UDP}]}}`)
	if Project(apinames.Default, template, tcp, types) == Project(apinames.Default, template, udp, types) {
		t.Error("another protocol is not drift")
	}
	if !Matches(apinames.Default, template, tcp, types) || Matches(apinames.Default, template, udp, types) {
		t.Error("TCP has to match, and UDP must not")
	}
}

func TestProjectEmptyAndNull(t *testing.T) {
	t.Parallel()
	template := yamltest.Decode(t, `{metadata: {labels: {}, annotations: null}, a: {}, b: [], c: null, d: {e: null}, g: 1}`)
	lives := []string{
		`{g: 1}`, `{metadata: {}, a: {}, b: [], c: null, d: {}, g: 1}`, `{metadata: {labels: {x: y}}, a: {z: 1}, b: null, c: 3, d: {e: 1, f: [1]}, g: 1}`,
	}
	want := Project(apinames.Default, template, yamltest.Decode(t, lives[0]), nil)
	for _, live := range lives {
		require.Equal(t, want, Project(apinames.Default, template, yamltest.Decode(t, live), nil), fmt.Sprintf("Project(apinames.Default, %s) differs from the others", live))
		if !Matches(apinames.Default, template, yamltest.Decode(t, live), nil) {
			t.Errorf("Matches(apinames.Default, %s) = false", live)
		}
	}

	for _, live := range []string{`{g: 2}`, `{}`, `{g: 1, b: [1]}`} {
		if Project(apinames.Default, template, yamltest.Decode(t, live), nil) == want || Matches(apinames.Default, template, yamltest.Decode(t, live), nil) {
			t.Errorf("%s is not drift", live)
		}
	}
}

// Other managers can own parts of a field that is empty here. An unchanged object must look the
// same before and after.
func TestKnowledgeFromOthersIsNoDrift(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ reason, template, live, own, others string }{
		{"a zero value that the API server drops", `{a: {b: ""}}`, `{a: {}}`, `{"f:a": {}}`, `{"f:a": {"f:b": {}}}`},
		{"empty maps that it drops", `{a: {b: {}, c: []}}`, `{a: {}}`, `{"f:a": {}}`, `{"f:a": {"f:b": {"f:c": {}}}}`},
		{"an empty map that it drops", `{a: {}}`, `{}`, `{"f:a": {}}`, `{"f:a": {"f:b": {}}}`},
		{"an empty list", `{a: []}`, `{a: []}`, `{"f:a": {}}`, `{"f:a": {"k:{\"name\":\"a\"}": {}}}`},
		{"a map that is owned as a whole behind it", `{a: {b: {}}, c: {}}`, `{a: {}, c: {d: 1}}`, `{"f:a": {}, "f:c": {}}`, `{"f:a": {"f:b": {}}}`},
	} {
		template, live := yamltest.Decode(t, tc.template), yamltest.Decode(t, tc.live)
		if Project(apinames.Default, template, live, learn(tc.own)) != Project(apinames.Default, template, live, learn(tc.own, tc.others)) {
			t.Errorf("%s looks changed", tc.reason)
		}
	}
}

// An object in another version than the template's looks the same as long as others change only its
// status and metadata.
func TestConverted(t *testing.T) {
	t.Parallel()
	template := yamltest.Decode(t, `{apiVersion: autoscaling/v1, metadata: {name: web, labels: {a: b}}, spec: {target: 50}}`)
	project := func(text string) any {
		live := yamltest.Decode(t, text)
		return Project(apinames.Default, Converted(template, live), live, nil)
	}
	before := project(`{apiVersion: autoscaling/v2, metadata: {name: web, labels: {a: b}}, spec: {metrics: [{target: 50}]}}`)
	if project(`{apiVersion: autoscaling/v2, metadata: {name: web, labels: {a: b, c: d}, generation: 2}, spec: {metrics: [{target: 50}]}, status: {x: 1}}`) != before {
		t.Error("what is of others looks like a change")
	}

	for _, text := range []string{
		`{apiVersion: autoscaling/v2, metadata: {name: web, labels: {a: b}}, spec: {metrics: [{target: 60}]}}`,
		`{apiVersion: autoscaling/v2, metadata: {name: web, labels: {a: b}}, spec: {metrics: [{target: 50}], more: 1}}`,
		`{apiVersion: autoscaling/v2, metadata: {name: web, labels: {a: c}}, spec: {metrics: [{target: 50}]}}`,
	} {
		if project(text) == before {
			t.Errorf("%s looks like no change", text)
		}
	}
}

func TestMatchesIsNoGuess(t *testing.T) {
	t.Parallel()
	tests := []struct{ reason, template, live string }{
		{"a quantity that was normalised", `{a: {cpu: 1000m}}`, `{a: {cpu: "1"}}`},
		{"a zero value that was left out", `{a: ""}`, `{}`},
		{"a list that was sorted", `{a: [b, a]}`, `{a: [a, b]}`},
		{"a list where the template has a map", `{a: {b: 1}}`, `{a: [1]}`},
		{"a map where the template has a list", `{a: [1]}`, `{a: {b: 1}}`},
		{"another controller", `{metadata: {ownerReferences: [{uid: a, controller: true}]}}`, `{metadata: {ownerReferences: [{uid: b, controller: true}]}}`},
		{"a finalizer that is missing", `{metadata: {finalizers: [a]}}`, `{metadata: {finalizers: [b]}}`},
		{"another name", `{metadata: {name: a}}`, `{metadata: {name: b}}`},
		{"an annotation", `{metadata: {annotations: {a: b}}}`, `{metadata: {annotations: {}}}`},
		{"an additional field in a whole list, which another manager can have added", `{a: [{b: 1}]}`, `{metadata: {managedFields: [{manager: kubectl-edit, operation: Update}]}, a: [{b: 1, c: {}}]}`},
	}

	for _, test := range tests {
		if Matches(apinames.Default, yamltest.Decode(t, test.template), yamltest.Decode(t, test.live), nil) {
			t.Errorf("%s: Matches = true", test.reason)
		}
	}

	for _, manager := range []string{"manager: package-operator, operation: Update", "manager: kubelet, operation: Update, subresource: status"} {
		live := yamltest.Decode(t, `{metadata: {managedFields: [{`+manager+`}]}, a: [{b: 1, c: {}}]}`)
		if !Matches(apinames.Default, yamltest.Decode(t, `{a: [{b: 1}]}`), live, nil) {
			t.Errorf("a default in a whole list does not match next to %s", manager)
		}
	}
}

// TestProjectLongList covers lists that are long enough for an index.
func TestProjectLongList(t *testing.T) {
	t.Parallel()
	const n = 3000
	types := learn(`{"f:spec":{"f:list":{"k:{\"name\":\"1\"}":{}}}}`)
	var elements []any
	for i := range n {
		elements = append(elements, map[string]any{"name": fmt.Sprint(i), "value": int64(i)})
	}

	object := func(list []any) map[string]any { return map[string]any{"spec": map[string]any{"list": list}} }
	reversed := slices.Clone(elements)
	slices.Reverse(reversed)
	template := object(elements)
	if !Matches(apinames.Default, template, object(append(slices.Clone(elements), map[string]any{"name": "x"})), types) {
		t.Error("the list itself with one element more does not match")
	}

	want := Project(apinames.Default, template, object(reversed), types)
	if got := Project(apinames.Default, template, object(slices.Insert(slices.Clone(reversed), n/2, any(map[string]any{"name": "x"}))), types); got != want {
		t.Error("an element of others between ours is drift")
	}

	changed := object(slices.Clone(reversed))
	changed["spec"].(map[string]any)["list"].([]any)[n/2] = map[string]any{"name": fmt.Sprint(n - 1 - n/2), "value": "x"}
	if Project(apinames.Default, template, changed, types) == want {
		t.Error("a change in the middle is not drift")
	}
}
