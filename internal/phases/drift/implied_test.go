package drift

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

const (
	ours   = `{manager: package-operator, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: `
	byHand = `{manager: kubectl-edit, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: `
)

// imply returns the Implied of a template for a live object of the same kind.
func imply(t *testing.T, template, live string) *Implied {
	t.Helper()
	object := &unstructured.Unstructured{Object: yamltest.Decode(t, live)}
	m, err := Imply(apinames.Default, yamltest.Decode(t, template), object, false, LearnListTypes(object.GetManagedFields()))
	require.NoError(t, err)
	return m
}

// withoutFields returns an object without its managedFields.
func withoutFields(obj map[string]any) map[string]any {
	if metadata, isMap := obj["metadata"].(map[string]any); isMap {
		delete(metadata, "managedFields")
	}
	return obj
}

func TestImplied(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, template, live, want string }{
		"defaults": {
			reason:   "a field without a manager is a default, which the API server sets again",
			template: `{kind: D, spec: {strategy: {type: Recreate}}}`,
			live: `{kind: D, metadata: {managedFields: [` + ours + `{"f:spec": {"f:strategy": {"f:type": {}}}}}]},
				spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}, revisionHistoryLimit: 10}}`,
			want: `{kind: D, spec: {strategy: {type: Recreate}}}`,
		},
		"former fields": {
			reason:   "what the engine wrote, and the template lacks, is removed",
			template: `{kind: D, spec: {a: 1}}`,
			live:     `{kind: D, metadata: {managedFields: [` + ours + `{"f:spec": {"f:a": {}, "f:b": {}}}}]}, spec: {a: 1, b: 2}}`,
			want:     `{kind: D, spec: {a: 1}}`,
		},
		"fields of others": {
			reason:   "others keep their fields and their elements, in their order",
			template: `{kind: D, spec: {list: [{name: a, v: 1}]}}`,
			live: `{kind: D, metadata: {managedFields: [` + ours + `{"f:spec": {"f:list": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:v": {}}}}}},
				` + byHand + `{"f:spec": {"f:more": {}, "f:list": {'k:{"name":"a"}': {"f:w": {}}, 'k:{"name":"first"}': {".": {}, "f:name": {}}}}}}]},
				spec: {more: 1, list: [{name: first}, {name: a, v: 2, w: 3, x: 4}]}}`,
			want: `{kind: D, spec: {more: 1, list: [{name: first}, {name: a, v: 1, w: 3}]}}`,
		},
		"a field in an element that leaves": {
			reason:   "a manager that changed a field of an element does not own the element",
			template: `{kind: D, spec: {list: [{name: a}]}}`,
			live: `{kind: D, metadata: {managedFields: [` + ours + `{"f:spec": {"f:list": {'k:{"name":"a"}': {".": {}, "f:name": {}}, 'k:{"name":"b"}': {".": {}, "f:name": {}}}}}},
				` + byHand + `{"f:spec": {"f:list": {'k:{"name":"b"}': {"f:image": {}}}}}}]}, spec: {list: [{name: a}, {name: b, image: x}]}}`,
			want: `{kind: D, spec: {list: [{name: a}]}}`,
		},
		"an injected element": {
			reason:   "a webhook adds elements that have no manager",
			template: `{kind: D, spec: {list: [{name: a}]}}`,
			live: `{kind: D, metadata: {managedFields: [` + ours + `{"f:spec": {"f:list": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}}}]},
				spec: {list: [{name: a}, {name: injected}]}}`,
			want: `{kind: D, spec: {list: [{name: a}, {name: injected}]}}`,
		},
		"an empty map": {
			reason:   "what others put into an empty map of the template is removed",
			template: `{kind: D, spec: {automated: {}}}`,
			live:     `{kind: D, metadata: {managedFields: [` + byHand + `{"f:spec": {"f:automated": {"f:prune": {}}}}}]}, spec: {automated: {prune: true}}}`,
			want:     `{kind: D, spec: {automated: {}}}`,
		},
		"an empty spec": {
			reason:   "an object with an empty spec leaves it to others",
			template: `{kind: D, spec: {}}`,
			live:     `{kind: D, metadata: {managedFields: [` + byHand + `{"f:spec": {"f:holder": {}}}}]}, spec: {holder: a}}`,
			want:     `{kind: D, spec: {holder: a}}`,
		},
		"replicas": {
			reason:   "the live number stays",
			template: `{kind: D, spec: {a: 1}}`,
			live:     `{kind: D, metadata: {managedFields: [` + ours + `{"f:spec": {"f:a": {}, "f:replicas": {}}}}]}, spec: {a: 1, replicas: 4}}`,
			want:     `{kind: D, spec: {a: 1, replicas: 4}}`,
		},
		"metadata and status": {
			reason:   "none of their fields is a default",
			template: `{kind: D, metadata: {name: x, labels: {a: b}}}`,
			live: `{kind: D, metadata: {name: x, uid: u, finalizers: [f], labels: {c: d, left: x}, managedFields: [` + ours + `{"f:metadata": {"f:labels": {"f:left": {}}}}}]},
				status: {ready: true}}`,
			want: `{kind: D, metadata: {name: x, uid: u, finalizers: [f], labels: {a: b, c: d}}, status: {ready: true}}`,
		},
		"rules of a controller": {
			reason:   "rights that were aggregated go with the aggregation",
			template: `{kind: ClusterRole}`,
			live: `{kind: ClusterRole, metadata: {managedFields: [` + ours + `{"f:aggregationRule": {}}},
				{manager: clusterrole-aggregation-controller, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:rules": {}}}]}, aggregationRule: {}, rules: [{verbs: [get]}]}`,
			want: `{kind: ClusterRole}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := withoutFields(imply(t, tc.template, tc.live).Object())
			if metadata, has := got["metadata"].(map[string]any); has && len(metadata) == 0 {
				delete(got, "metadata")
			}
			require.Equal(t, yamltest.Decode(t, tc.want), got, tc.reason)
		})
	}
}

// TestImpliedAsApplied checks that a server-side apply leaves fields without a manager.
func TestImpliedAsApplied(t *testing.T) {
	t.Parallel()
	m := imply(t, `{kind: D, spec: {a: 1}}`, `{kind: D, metadata: {managedFields: [`+ours+`{"f:spec": {"f:a": {}, "f:b": {}}}}]}, spec: {a: 2, b: 3, default: 4}}`)
	require.Equal(t, yamltest.Decode(t, `{a: 1, default: 4}`), m.AsApplied().Object()["spec"])
}

func TestImpliedOpen(t *testing.T) {
	t.Parallel()
	m := imply(t, `{kind: D, spec: {dropped: {}, kept: {}}}`, `{kind: D, metadata: {managedFields: [`+byHand+`{"f:spec": {"f:dropped": {"f:a": {}}, "f:kept": {"f:b": {}}}}}]},
		spec: {dropped: {a: 1}, kept: {b: 2}}}`)
	answer := yamltest.Decode(t, `{kind: D, spec: {kept: {}}}`)
	if !m.Open(answer) || m.Open(answer) {
		t.Error("a map that the API server drops is opened once")
	}
	require.Equal(t, yamltest.Decode(t, `{dropped: {a: 1}, kept: {}}`), m.Object()["spec"])

	// An injected mount is refused without its volume, which the template empties, but states nothing.
	const injected = `{volumes: [{name: v}], containers: [{name: web, mounts: [{path: s, volume: v}]}]}`
	m = imply(t, `{kind: D, spec: {volumes: [], containers: [{name: web}]}}`, `{kind: D, metadata: {managedFields: [`+byHand+`{"f:spec": {
		"f:volumes": {'k:{"name":"v"}': {".": {}, "f:name": {}}},
		"f:containers": {'k:{"name":"web"}': {"f:mounts": {'k:{"path":"s"}': {".": {}, "f:path": {}, "f:volume": {}}}}}}}}]}, spec: `+injected+`}`)
	if !m.Yield([]string{"spec.containers[0].mounts[0].volume"}) || len(m.Yielded()) != 1 {
		t.Error("the mount does not yield")
	}
	if !m.Open(yamltest.Decode(t, `{kind: D, spec: {containers: [{name: web}]}}`)) || len(m.Yielded()) != 0 {
		t.Error("the volumes are not opened, or the mount still yields")
	}
	require.Equal(t, yamltest.Decode(t, injected), m.Object()["spec"])
}

func TestYield(t *testing.T) {
	t.Parallel()
	const ports = `"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}, 'k:{"port":8080,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}}}`
	for name, tc := range map[string]struct {
		reason, template, live, want string
		causes                       []string
	}{
		"an element": {
			reason:   "a port that was made another one by hand has the name that the template has",
			template: `{kind: S, spec: {ports: [{name: http, port: 80}], other: 1}}`,
			live: `{kind: S, metadata: {managedFields: [` + byHand + `{"f:spec": {"f:more": {}, ` + ports + `}}}]},
				spec: {more: 1, ports: [{name: http, port: 8080, protocol: TCP}]}}`,
			causes: []string{"spec.ports[1].name"},
			want:   `{other: 1, more: 1, ports: [{name: http, port: 80}]}`,
		},
		"the other alternative": {
			reason:   "the fields next to the cause exclude it",
			template: `{kind: S, spec: {env: [{name: A, valueFrom: {key: k}}]}}`,
			live: `{kind: S, metadata: {managedFields: [` + byHand + `{"f:spec": {"f:env": {'k:{"name":"A"}': {"f:value": {}}}}}}]},
				spec: {env: [{name: A, value: x}]}}`,
			causes: []string{"spec.env[0].valueFrom"},
			want:   `{env: [{name: A, valueFrom: {key: k}}]}`,
		},
		"a struct": {
			reason:   "another manager's field in a removed struct is removed with it",
			template: `{kind: S, spec: {a: 1}}`,
			live:     `{kind: S, metadata: {managedFields: [` + byHand + `{"f:spec": {"f:probe": {"f:period": {}}}}}]}, spec: {probe: {period: 3}}}`,
			causes:   []string{"spec.probe"},
			want:     `{a: 1}`,
		},
		"a field of the object": {
			reason:   "if two fields exclude each other, the other manager's yields, and deeper ones stay",
			template: `{kind: S, spec: {minAvailable: 1}}`,
			live: `{kind: S, metadata: {managedFields: [` + byHand + `{"f:spec": {"f:maxUnavailable": {}, "f:deep": {"f:x": {}}}}}]},
				spec: {maxUnavailable: 1, deep: {x: 1}}}`,
			causes: []string{"spec.minAvailable"},
			want:   `{minAvailable: 1, deep: {x: 1}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := imply(t, tc.template, tc.live)
			if !m.Yield(tc.causes) {
				t.Fatalf("no field yields to %s", tc.causes)
			}
			require.Equal(t, yamltest.Decode(t, tc.want), m.Object()["spec"], tc.reason)
			require.Equal(t, []string{"kubectl-edit"}, m.Yielded(), "managers")
			for range 8 {
				m.Yield([]string{"spec", "spec.ports[7].name", "metadata.labels", "[", "x]"})
			}
			if m.Yield([]string{"spec", "spec.ports[7].name", "metadata.labels", "[", "x]"}) {
				t.Error("it yields without end")
			}
		})
	}
}

// TestYieldTwins checks that a key in binaryData of another manager yields to the same key in data,
// and that no other key does.
func TestYieldTwins(t *testing.T) {
	t.Parallel()
	m := imply(t, `{kind: ConfigMap, data: {k: a}}`, `{kind: ConfigMap, metadata: {managedFields: [`+byHand+`{"f:binaryData": {"f:k": {}, "f:other": {}}}}]}, binaryData: {k: Yg==, other: Yg==}}`)
	if !m.Yield([]string{"data[k]"}) {
		t.Error("the key of binaryData has to give way")
	}
	if diff := cmp.Diff(yamltest.Decode(t, `{kind: ConfigMap, data: {k: a}, binaryData: {other: Yg==}}`), withoutFields(m.Object()), cmpopts.IgnoreMapEntries(func(key string, _ any) bool { return key == "metadata" })); diff != "" {
		t.Error(diff)
	}
}

// TestYieldInVain checks that fields are put back if yielding did not help, and that the manager
// that wrote last yields first.
func TestYieldInVain(t *testing.T) {
	t.Parallel()
	const injected = `{manager: injector, operation: Update, apiVersion: v1, time: "2026-01-01T00:00:00Z", fieldsType: FieldsV1, fieldsV1: `
	const edited = `{manager: kubectl-edit, operation: Update, apiVersion: v1, time: "2026-01-02T00:00:00Z", fieldsType: FieldsV1, fieldsV1: `
	for name, tc := range map[string]struct {
		reason, template, live string
		causes, managers       []string
		wants                  []string
	}{
		"next to the cause": {
			reason:   "the key of binaryData is in the way, and the injected key is not",
			template: `{kind: C, data: {k: a}}`,
			live: `{kind: C, metadata: {managedFields: [` + injected + `{"f:data": {"f:ca": {}}}},` + edited + `{"f:binaryData": {"f:k": {}}}}]},
				data: {ca: x, k: a}, binaryData: {k: Yg==}}`,
			causes:   []string{"data[k]"},
			wants:    []string{`{data: {k: a}, binaryData: {k: Yg==}}`, `{data: {k: a, ca: x}}`, `{data: {k: a, ca: x}, binaryData: {k: Yg==}}`},
			managers: nil,
		},
		"below a neighbour of the cause": {
			reason:   "the other handler of the probe conflicts, not the number next to it",
			template: `{kind: D, probe: {grpc: {port: 1}}}`,
			live: `{kind: D, metadata: {managedFields: [` + edited + `{"f:probe": {".": {}, "f:period": {}, "f:http": {".": {}, "f:path": {}}}}}]},
				probe: {period: 3, http: {path: /}}}`,
			causes: []string{"probe.grpc"},
			wants:  []string{`{probe: {grpc: {port: 1}, http: {path: /}}}`, `{probe: {grpc: {port: 1}}}`, `{probe: {grpc: {port: 1}, period: 3, http: {path: /}}}`},
		},
		"two managers": {
			reason:   "an injected field does not conflict with an edited one",
			template: `{kind: W, hook: {service: s}}`,
			live: `{kind: W, metadata: {managedFields: [` + injected + `{"f:hook": {"f:ca": {}}}},` + edited + `{"f:hook": {"f:url": {}}}}]},
				hook: {service: s, ca: x, url: u}}`,
			causes:   []string{"hook"},
			wants:    []string{`{hook: {service: s, ca: x}}`, `{hook: {service: s, url: u}}`, `{hook: {service: s}}`, `{hook: {service: s, ca: x, url: u}}`},
			managers: nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := imply(t, tc.template, tc.live)
			for i, want := range tc.wants {
				if last := i == len(tc.wants)-1; m.Yield(tc.causes) == last {
					t.Fatalf("%s: try %d", tc.reason, i)
				}
				got := withoutFields(m.Object())
				delete(got, "metadata")
				delete(got, "kind")
				require.Equal(t, yamltest.Decode(t, want), got, fmt.Sprintf("%s: try %d", tc.reason, i))
			}
			if diff := cmp.Diff(tc.managers, m.Yielded(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("managers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFresh checks that a field without a manager stays if a new object has it as well.
func TestFresh(t *testing.T) {
	t.Parallel()
	m := imply(t, `{kind: I, spec: {rules: [a], service: {port: 1}}}`, `{kind: I, spec: {class: nginx, rules: [], service: {port: 1, node: 7}, strategy: {rolling: 1}}}`)
	fresh := yamltest.Decode(t, `{kind: I, spec: {class: nginx, rules: [a], service: {port: 1, node: 8}}}`)
	if !m.Fresh(fresh) || m.Fresh(fresh) {
		t.Error("the class has to stay")
	}
	require.Equal(t, yamltest.Decode(t, `{class: nginx, rules: [a], service: {port: 1}}`), m.Object()["spec"])
}

// TestKeep checks that an installer keeps immutable fields, and no others.
func TestKeep(t *testing.T) {
	t.Parallel()
	const helm = `{manager: helm, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:scopes": {}, "f:hard": {".": {}, "f:pods": {}}, "f:list": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:x": {}}}}}}`
	object := &unstructured.Unstructured{Object: yamltest.Decode(t, `{kind: Q, metadata: {managedFields: [`+helm+`]}, spec: {scopes: [a], hard: {pods: 1, theirs: 2}, list: [{name: a, x: 1}]}}`)}
	m, err := Imply(apinames.Default, yamltest.Decode(t, `{kind: Q, spec: {more: 1}}`), object, true, LearnListTypes(object.GetManagedFields()))
	require.NoError(t, err)
	if m.Keep([]string{"spec.other", "spec.more"}) {
		t.Error("a field of the template, or without a manager, is kept")
	}
	if !m.Keep([]string{"spec.scopes", "spec.list[0].x"}) || m.Keep([]string{"spec.scopes"}) {
		t.Error("what cannot change has to be kept, once")
	}

	require.Equal(t, yamltest.Decode(t, `{more: 1, scopes: [a], list: [{name: a, x: 1}]}`), m.Object()["spec"])
	require.Equal(t, yamltest.Decode(t, `{spec: {scopes: [a], hard: {pods: 1}}}`), Installed(apinames.Default, object), "what the installer wrote")
}

// TestKeepAfterYield checks that fields that yielded before an installer's field was kept are put
// back as well.
func TestKeepAfterYield(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{Object: yamltest.Decode(t, `{kind: Q, metadata: {managedFields: [
		{manager: helm, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:scopes": {}}}},
		`+byHand+`{"f:spec": {"f:volumes": {"f:v": {}}, "f:mount": {}}}}]}, spec: {scopes: [a], volumes: {v: 1}, mount: v}}`)}
	m, err := Imply(apinames.Default, yamltest.Decode(t, `{kind: Q, spec: {volumes: {}}}`), object, true, LearnListTypes(object.GetManagedFields()))
	require.NoError(t, err)
	if !m.Yield([]string{"spec.mount"}) || !m.Keep([]string{"spec.scopes"}) || !m.Open(yamltest.Decode(t, `{kind: Q, spec: {scopes: [a]}}`)) {
		t.Error("the mount yields, the scopes are kept, and the volumes are opened")
	}
	require.Equal(t, yamltest.Decode(t, `{scopes: [a], volumes: {v: 1}, mount: v}`), m.Object()["spec"])
}

// TestAfter checks empty maps and lists: managedFields keep naming the manager that filled them,
// even after the engine has emptied them.
func TestAfter(t *testing.T) {
	t.Parallel()
	m := imply(t, `{kind: Q, spec: {list: [{k: a}]}}`, `{kind: Q, metadata: {managedFields: [
		{manager: edit, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:map": {}, "f:set": {}, "f:full": {"f:x": {}}, "f:theirs": {}, "f:list": {'k:{"k":"a"}': {".": {}, "f:k": {}, "f:in": {}}}}}}]},
		spec: {map: {}, set: [], full: {x: 1}, theirs: {}, list: [{k: a, in: {}}]}}`)
	m.After([]map[string]any{yamltest.Decode(t, `{spec: {map: {}, set: [], full: {}, theirs: {y: 1}, list: [{k: a, in: {}}]}}`)})
	require.Equal(t, yamltest.Decode(t, `{full: {x: 1}, theirs: {}, list: [{k: a}]}`), m.Object()["spec"])
}

// TestYieldToSubresources checks that the replicas of an autoscaler never have to yield.
func TestYieldToSubresources(t *testing.T) {
	t.Parallel()
	m := imply(t, `{kind: D, spec: {a: 1}}`, `{kind: D, metadata: {managedFields: [
		{manager: kube-controller-manager, operation: Update, subresource: scale, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}]}, spec: {replicas: 3}}`)
	if m.Yield([]string{"spec"}) || m.Object()["spec"].(map[string]any)["replicas"] != int64(3) {
		t.Error("the replicas gave way")
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	template := yamltest.Decode(t, `{metadata: {labels: {a: b}}, spec: {map: {}, list: [], deep: [{a: {}, zero: 0, gone: null}], text: x}}`)
	for answer, want := range map[string]bool{
		`{spec: {map: {}, list: [], deep: [{a: {}}], text: y, default: z}}`: false,
		`{spec: {list: [], deep: [{a: {}}], text: x}}`:                      true,
		`{spec: {map: {k: v}, list: [], deep: [{a: {}}], text: x}}`:         true,
		`{spec: {map: {}, deep: [{a: {}}], text: x}}`:                       true,
		`{spec: {map: {}, list: [], deep: [{}], text: x}}`:                  true,
		`{spec: {map: {}, list: [], deep: [{a: {}}]}}`:                      true,
		`{}`: true,
		`{metadata: {}, spec: {map: {}, list: [], deep: [{a: {}}], text: "1"}}`: false,
	} {
		require.Equal(t, want, Short(template, yamltest.Decode(t, answer), nil), fmt.Sprintf("Short(%s)", answer))
	}

	if Short(yamltest.Decode(t, `{spec: {}}`), yamltest.Decode(t, `{spec: {a: 1}}`), nil) {
		t.Error("an empty spec is filled by others")
	}
}

func TestReshaped(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		former, next string
		want         bool
	}{
		{`{a: {b: 1}, c: [{d: 1}]}`, `{a: {b: 2}, c: [{d: 2}]}`, false},
		{`{a: 1}`, `{a: 1, b: 2}`, true},
		{`{a: 1, b: 2}`, `{a: 1}`, true},
		{`{a: [1, 2]}`, `{a: [1]}`, true},
		{`{a: {b: null}}`, `{a: {}}`, false},
	} {
		require.Equal(t, tc.want, Reshaped(yamltest.Decode(t, tc.former), yamltest.Decode(t, tc.next)), fmt.Sprintf("Reshaped(%s, %s)", tc.former, tc.next))
	}
}

func TestResidue(t *testing.T) {
	t.Parallel()
	nobody := func([]string) bool { return false }
	former := yamltest.Decode(t, `{spec: {clusterIP: None, type: ClusterIP, replicas: 2, left: {a: 1}, stays: 1}, status: {a: 1}}`)
	next := yamltest.Decode(t, `{spec: {stays: 1}}`)
	live := yamltest.Decode(t, `{spec: {clusterIP: None, type: ClusterIP, replicas: 2, stays: 1}, status: {a: 1}}`)
	require.Equal(t, []string{"spec.clusterIP", "spec.type"}, Residue(former, next, live, nil, nobody))
	fresh := yamltest.Decode(t, `{spec: {clusterIP: 10.0.0.1, type: ClusterIP}}`)
	require.Equal(t, []string{"spec.clusterIP"}, Residue(former, next, live, fresh, nobody))
	theirs := func(path []string) bool { return slices.Equal(path, []string{"spec", "clusterIP"}) }
	if left := Residue(former, next, live, fresh, theirs); len(left) > 0 {
		t.Errorf("what another manager owns is left behind: %v", left)
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	live := &unstructured.Unstructured{Object: yamltest.Decode(t, `{kind: C, metadata: {uid: u, resourceVersion: "7", labels: {a: b}}, spec: {a: 1}, gone: 1, same: {x: 1}, status: {y: 1}}`)}
	next := yamltest.Decode(t, `{kind: C, metadata: {uid: u, resourceVersion: "7", labels: {a/b: c~d}}, spec: {b: 1}, same: {x: 1}}`)
	patch, err := Replace(live, next)
	require.NoError(t, err)
	var ops []struct{ Op, Path string }
	require.NoError(t, json.Unmarshal(patch, &ops))
	var got []string
	for _, op := range ops {
		got = append(got, op.Op+" "+op.Path)
	}

	want := []string{"test /metadata/uid", "test /metadata/resourceVersion", "add /spec", "remove /gone", "add /metadata/labels"}
	require.Equal(t, want, got, "operations")
}

// TestMigrationGivesUpReplicas checks that an autoscaler takes over from the live number.
func TestMigrationGivesUpReplicas(t *testing.T) {
	t.Parallel()
	live := &unstructured.Unstructured{Object: yamltest.Decode(t, `{apiVersion: v1, kind: D, metadata: {uid: u, resourceVersion: "1", managedFields: [`+ours+`{"f:spec": {"f:replicas": {}, "f:a": {}}}}]}}`)}
	fields := func(next string) []string {
		migrated, err := migrate(apinames.Default, live.GetManagedFields(), "v1", Origin{Next: yamltest.Decode(t, next)})
		require.NoError(t, err)
		set, err := Fields(migrated[len(migrated)-1])
		require.NoError(t, err)
		var paths []string
		for path := range set.All() {
			paths = append(paths, path.String())
		}
		slices.Sort(paths)
		return paths
	}

	require.Equal(t, []string{".spec.a"}, fields(`{spec: {a: 1}}`))
	require.Equal(t, []string{".spec.a", ".spec.replicas"}, fields(`{spec: {replicas: 3}}`))
	if _, needed, _ := Migration(apinames.Default, live, Origin{Next: yamltest.Decode(t, `{spec: {replicas: 3}}`)}); needed {
		t.Error("no field is given up")
	}
}

// TestMigrationOfStringData covers stringData, which the API server stores as data without a
// manager.
func TestMigrationOfStringData(t *testing.T) {
	t.Parallel()
	entries := []metav1.ManagedFieldsEntry{{
		Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:stringData":{"f:j":{}}}`),
	}}
	migrated, err := migrate(apinames.Default, entries, "v1", Origin{Next: map[string]any{}, Adopting: true})
	require.NoError(t, err)
	require.Equal(t, `{"f:data":{"f:j":{}}}`, migrated[0].FieldsV1.GetRawString(), "the engine owns")
}
