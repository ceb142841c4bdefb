package cli_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A package of init installs unchanged in its scope, with the flags of the README, and
// render prints the installed objects.
func TestInit(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	for _, test := range []struct {
		name, want string
		init, to   []string
		// wrong is the other scope, and advice its error.
		wrong  []string
		advice string
	}{
		{
			"begun", "package begun/begun is available: begun 0.1.0, revision 1", nil, []string{"-n", "begun"},
			[]string{"--cluster"}, "can only be installed as a Package, in a namespace: leave out --cluster",
		},
		{
			"begun-cluster", "clusterpackage begun-cluster is available: begun-cluster 0.1.0, revision 1", []string{"--cluster"}, []string{"--cluster"},
			[]string{"-n", "default"}, "can only be installed as a ClusterPackage: add --cluster",
		},
	} {
		folder := filepath.Join(t.TempDir(), test.name)
		ok(t, env, append([]string{"init", folder}, test.init...)...)
		ok(t, env, "test", folder)
		ok(t, env, "lint", folder, "--fail-on", "info")
		image := env.Registry() + "/" + test.name + ":v1"
		ok(t, env, "build", folder, "--push", "-t", image)
		if len(test.init) == 0 {
			namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": test.name}}}
			require.NoError(t, env.Client.Create(t.Context(), namespace))
		}
		if refused := run(t, env, append([]string{"install", image, test.name}, test.wrong...)...); refused.code != 1 || refused.out != "" || refused.err != "Error: "+image+" "+test.advice+"\n" {
			t.Errorf("the wrong scope: %+v", refused)
		}
		installed := ok(t, env, append([]string{"install", image, test.name}, test.to...)...)
		if !strings.Contains(installed.out, test.want) {
			t.Errorf("got %+v", installed)
		}
		var list struct{ Items []map[string]any }
		require.NoError(t, json.Unmarshal([]byte(ok(t, env, "render", folder, "-o", "json").out), &list))
		for _, item := range list.Items {
			want := &unstructured.Unstructured{Object: item}
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(want.GroupVersionKind())
			key := client.ObjectKeyFromObject(want)
			if key.Namespace == "" && want.GetKind() != "Namespace" {
				key.Namespace = test.name
			}
			if err := env.Client.Get(t.Context(), key, live); err != nil {
				t.Errorf("%s %s: %v", want.GetKind(), key, err)
				continue
			}
			if path := differs(item, plain(t, live.Object), ""); path != "" {
				t.Errorf("%s %s: %s is not as it was rendered", want.GetKind(), key, path)
			}
		}
		if len(list.Items) < 3 {
			t.Errorf("%d objects were rendered", len(list.Items))
		}
		name := "package/" + test.name
		if len(test.init) > 0 {
			name = "clusterpackage/" + test.name
		}
		ok(t, env, append([]string{"delete", name}, test.to[:2*(1-len(test.init))]...)...)
	}
}

// plain is an object as JSON has it.
func plain(t *testing.T, obj map[string]any) (out map[string]any) {
	t.Helper()
	raw, err := json.Marshal(obj)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

// differs returns the path of a wanted value that differs in the cluster. It ignores
// additional fields.
func differs(want, live any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		fields, _ := live.(map[string]any)
		for key, value := range want {
			if at := differs(value, fields[key], path+"."+key); at != "" {
				return at
			}
		}
		return ""
	case []any:
		elements, _ := live.([]any)
		if len(elements) != len(want) {
			return path
		}
		for i, value := range want {
			if at := differs(value, elements[i], path+"[]"); at != "" {
				return at
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, live) {
		return path
	}
	return ""
}
