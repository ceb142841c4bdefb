package objecttemplates

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

const live = `{
	"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web"}},
	"spec": {"replicas": 2, "args": ["only"], "none": null, "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}], "one": [{"name": "x"}]},
	"status": {"conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "False"}]}
}`

func decoded(t testing.TB, text string) map[string]any {
	t.Helper()
	root := map[string]any{}
	require.NoError(t, utiljson.Unmarshal([]byte(text), &root))
	return root
}

// TestKeys reads the forms of the wire format, and jq. The error texts are parts of the whole.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		key  string
		want any
		err  string
	}{
		{key: "spec.replicas", want: int64(2)},
		{key: ".spec.replicas", want: int64(2)},
		{key: "{spec.replicas}", want: int64(2)},
		{key: "{.spec.replicas}", want: int64(2)},
		{key: `.metadata.labels['app\.kubernetes\.io/name']`, want: "web"},
		{key: `.metadata.labels.app\.kubernetes\.io/name`, want: "web"},
		{key: ".spec.containers[1].image", want: "b:1"},
		{key: ".spec.containers[-1:].image", want: []any{"b:1"}},
		{key: ".spec.none", want: nil},
		// A list stays a list, also with one element.
		{key: ".spec.args", want: []any{"only"}},
		{key: ".spec.one[*].name", want: []any{"x"}},
		{key: ".spec.containers[*].name", want: []any{"a", "b"}},
		{key: ".spec.containers[0,1].name", want: []any{"a", "b"}},
		{key: ".metadata.labels.*", want: []any{"web"}},
		{key: "..image", want: []any{"a:1", "b:1"}},
		// A filter that selects one element returns that element.
		{key: `.status.conditions[?(@.type=="Available")].status`, want: "True"},
		{key: `.spec.containers[?(@.image)].name`, want: []any{"a", "b"}},

		{key: "jq:.spec.replicas + 1", want: int64(3)},
		{key: `jq:[.spec.containers[] | select(.name == "b") | .image]`, want: []any{"b:1"}},
		{key: `jq:.spec.missing // "default"`, want: "default"},
		{key: "jq:.spec.missing", err: "yields no value"},
		{key: "jq:.spec.containers[]", err: "more than one value"},
		{key: "jq:.spec.replicas | keys", err: "jq"},
		{key: "jq:def f: f; f", err: "not available"},
		{key: "jq:input", err: "not available"},
		{key: "jq:env", err: "not available"},
		{key: "jq:", err: "filter"},

		{key: ".spec.missing", err: "missing is not found"},
		{key: ".spec.containers[*].port", err: "port is not found"},
		{key: ".spec.containers[7].name", err: "array index"},
		{key: ".spec.replicas.more", err: "not found"},
		{key: `.spec.containers[?(@.name=="c")].image`, err: "does not select a value"},
		{key: "{.spec.replicas}{.kind}", err: "is not a valid JSONPath"},
		{key: "", err: "is not a valid JSONPath"},
		{key: "{}", err: "is not a valid JSONPath"},
		{key: ".a[", err: "not a valid JSONPath"},
		{key: ".a[?(", err: "not a valid JSONPath"},
		{key: ".a[x]", err: "not a valid JSONPath"},
		{key: "..a..b", err: "more than once"},
		{key: "." + strings.Repeat("[0,0]", 10), err: "unions"},
		{key: "." + strings.Repeat("a", limits.ObjectTemplateKeyBytes), err: "the limit is"},
	} {
		k, err := compileKey(tc.key)
		var got any
		if err == nil {
			got, err = k.read(decoded(t, live))
		}
		if tc.err != "" {
			require.ErrorContains(t, err, tc.err, tc.key)
			continue
		}
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tc.key, err, diff)
		}
	}
}

func items(pairs ...string) []corev1alpha1.ObjectTemplateSourceItem {
	var all []corev1alpha1.ObjectTemplateSourceItem
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, corev1alpha1.ObjectTemplateSourceItem{Key: pairs[i], Destination: pairs[i+1]})
	}
	return all
}

func collect(t *testing.T, kind, content string, of []corev1alpha1.ObjectTemplateSourceItem) (map[string]any, error) {
	t.Helper()
	p := planOf(&corev1alpha1.ObjectTemplateSpec{Sources: []corev1alpha1.ObjectTemplateSource{{APIVersion: "v1", Kind: kind, Name: "x", Items: of}}}, owner)
	if p.err != nil {
		return nil, p.err
	}
	c := collector{config: map[string]any{}}
	err := c.add(context.Background(), &p.sources[0], content)
	return c.config, err
}

var owner = objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectTemplate", Namespace: "team", Name: "t"}, UID: "uid"}

// TestDestinations puts values together below .config.
func TestDestinations(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		items  []corev1alpha1.ObjectTemplateSourceItem
		want   map[string]any
		err    string
	}{
		{"nested", items("a", ".x.y", "b", ".x.z"), map[string]any{"x": map[string]any{"y": "1", "z": map[string]any{"c": "2"}}}, ""},
		{"later items overwrite", items("a", ".x", "b.c", ".x"), map[string]any{"x": "2"}, ""},
		{"into a value that is an object, which stays as it is at its source", items("b", ".x", "a", ".x.d", "b", ".y"), map[string]any{
			"x": map[string]any{"c": "2", "d": "1"}, "y": map[string]any{"c": "2"},
		}, ""},
		{"below a text", items("a", ".x", "a", ".x.y"), nil, ".x is a value of another item"},
		{"empty", items("a", ""), nil, "has to be a path"},
		{"a dot", items("a", "."), nil, "has to be a path"},
		{"without a dot", items("a", "x"), nil, "has to be a path"},
		{"an empty part", items("a", ".x..y"), nil, "has to be a path"},
		{"too deep", items("a", strings.Repeat(".x", limits.TemplateValueDepth+1)), nil, "the limit is"},
	} {
		got, err := collect(t, "ConfigMap", `{"a":"1","b":{"c":"2"}}`, tc.items)
		if tc.err != "" {
			require.ErrorContains(t, err, tc.err, tc.reason)
		} else if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tc.reason, err, diff)
		}
	}
}

// TestValuesAreBounded reads one large value again and again.
func TestValuesAreBounded(t *testing.T) {
	t.Parallel()
	content := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	var many []string
	for range 100 {
		many = append(many, "a", ".x")
	}
	if _, err := collect(t, "ConfigMap", content, items(many...)); err == nil || !strings.Contains(err.Error(), "more than 4194304 bytes") {
		t.Errorf("the error is %v", err)
	}
}

// TestErrorsQuoteNoSecret reads a Secret by keys whose errors quote their input.
func TestErrorsQuoteNoSecret(t *testing.T) {
	t.Parallel()
	const content = `{"data":{"password":"aHVudGVyMg=="}}`
	for _, key := range []string{"jq:.data.password | keys", "jq:.data.password | tonumber", ".data.password.x", ".data[0]", `.data[?(@.a > "x")]`} {
		_, err := collect(t, "Secret", content, items(key, ".x"))
		if err == nil || strings.Contains(err.Error(), "aHVu") || !strings.Contains(err.Error(), "spec.sources[0].items[0].key: it selects no value of Secret team/x") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestPathsAreBounded reads a path that selects each part of a deep object, and with it a large
// text again and again.
func TestPathsAreBounded(t *testing.T) {
	t.Parallel()
	const depth = 1000
	content := strings.Repeat(`{"a":`, depth) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("}", depth)
	k, err := compileKey("..")
	require.NoError(t, err)
	if _, err := k.read(decoded(t, content)); err == nil || !strings.Contains(err.Error(), "more than 4194304 bytes") {
		t.Errorf("the error is %v", err)
	}
}
