package listkeys_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/internal/cluster/schemas/bundled"
	"lockstep.run/lockstep/internal/objects/listkeys"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

func TestIdentify(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		schema []string
		lists  string
		want   [][]string
	}{
		{"names", nil, "[[{name: a}, {name: b}], [{name: b}]]", [][]string{{"name=a", "name=b"}, {"name=b"}}},
		{"a name before the keys of the schema", []string{"port"}, "[[{name: a, port: 1}], [{name: a, port: 2}]]", [][]string{{"name=a"}, {"name=a"}}},
		{"the schema before the table", []string{"id"}, "[[{id: x, key: a}]]", [][]string{{"id=x"}}},
		{"the schema's fields are missing", []string{"id"}, "[[{key: a}]]", [][]string{{"key=a"}}},
		{"as few fields as are unique", nil, "[[{containerPort: 80}], [{containerPort: 80, protocol: TCP}]]", [][]string{{"containerPort=80"}, {"containerPort=80"}}},
		{"a default", nil, "[[{containerPort: 53}], [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]]",
			[][]string{{"containerPort=53,protocol=TCP"}, {"containerPort=53,protocol=TCP", "containerPort=53,protocol=UDP"}}},
		{"names that are not unique", nil, "[[{name: a, mountPath: /x}, {name: a, mountPath: /y}]]", [][]string{{"mountPath=/x", "mountPath=/y"}}},
		{"a field that can be absent", nil, "[[{key: a}, {key: a, operator: Exists}]]", [][]string{{"key=a", "key=a,operator=Exists"}}},
		{"a map", nil, "[[{selector: {kind: {kind: Job}}}]]", [][]string{{`selector={"kind":{"kind":"Job"}}`}}},
		{"one list is empty", nil, "[[], [{name: a}]]", [][]string{{}, {"name=a"}}},
		{"all are empty", nil, "[[], []]", nil},
		{"plain values", nil, "[[a, b]]", nil},
		{"twice", nil, "[[{name: a}, {name: a}]]", nil},
		{"one without", nil, "[[{name: a}, {value: a}]]", nil},
	} {
		var lists [][]any
		for _, list := range yamltest.Object(t, "lists: "+tc.lists).Object["lists"].([]any) {
			lists = append(lists, list.([]any))
		}
		got, ok := listkeys.Identify(tc.schema, lists...)
		if diff := cmp.Diff(tc.want, got); diff != "" || ok != (tc.want != nil) {
			t.Errorf("%s: %t %s", tc.reason, ok, diff)
		}
	}
}

// TestTableHasTheKeysOfKubernetes checks the table against the keys that Kubernetes' schemas
// declare. It skips statuses, which are never merged.
func TestTableHasTheKeysOfKubernetes(t *testing.T) {
	t.Parallel()
	bundle, err := bundled.Kubernetes()
	require.NoError(t, err)
	ofStatus := []string{"apiServerID", "resourceID", "resourceClaimName", "driver", "status"}
	count := 0
	for name, text := range bundle.Definitions {
		var definition struct {
			Properties map[string]struct {
				Keys []string `json:"x-kubernetes-list-map-keys"`
			} `json:"properties"`
		}
		require.NoError(t, json.Unmarshal(text, &definition))
		for field, list := range definition.Properties {
			if len(list.Keys) == 0 || slices.Contains(ofStatus, list.Keys[0]) {
				continue
			}
			count++
			first, second := map[string]any{}, map[string]any{}
			for _, key := range list.Keys {
				first[key], second[key] = "a", "a"
			}
			second[list.Keys[len(list.Keys)-1]] = "b"
			if _, ok := listkeys.Identify(nil, []any{first, second}); !ok {
				t.Errorf("%s.%s: no entry for %v", name, field, list.Keys)
			}
		}
	}

	if count < 50 {
		t.Errorf("only %d lists with keys", count)
	}
}
