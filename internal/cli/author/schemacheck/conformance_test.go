package schemacheck

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: caches.cache.example.com}
spec:
  group: cache.example.com
  scope: Namespaced
  names: {kind: Cache, listKind: CacheList, plural: caches, singular: cache}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        x-kubernetes-validations: [{rule: "self.metadata.name != 'x'"}]
        properties:
          metadata: {type: object, properties: {name: {type: string, maxLength: 5}}}
          spec:
            type: object
            required: [size]
            x-kubernetes-validations: [{rule: "self.size < 10", message: too large}]
            properties:
              size: {type: integer, minimum: 1}
              mode: {type: string, enum: [fast, slow]}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              labels: {type: object, additionalProperties: {type: string}}
          status: {type: object, properties: {ready: {type: boolean}}}
`

const cache = "apiVersion: cache.example.com/v1alpha1\nkind: Cache\nmetadata: {name: a-long-name}\nspec: {size: 1, mode: fast, free: {a: [1]}, labels: {a: b}}\n"

func TestCheck(t *testing.T) {
	t.Parallel()
	replace := func(text, from, to string) string {
		if !strings.Contains(text, from) {
			t.Fatalf("no %q to replace", from)
		}
		return strings.Replace(text, from, to, 1)
	}
	for _, test := range []struct {
		reason, object string
		unchecked      bool
		want           []string
	}{
		{reason: "a resource of the package's own kind", object: cache},
		{reason: "an unknown field of it", object: replace(cache, "size: 1", "size: 1, sise: 2"),
			want: []string{`spec.sise: unknown field Did you mean "size"?`}},
		{reason: "a wrong type", object: replace(cache, "size: 1", "size: one"),
			want: []string{`spec.size: Invalid value: "string": spec.size in body must be of type integer: "string" `}},
		{reason: "a field that has to be there", object: replace(cache, "size: 1, ", ""),
			want: []string{"spec.size: Required value  (doubtful)"}},
		{reason: "none of the values", object: replace(cache, "fast", "quick"),
			want: []string{`spec.mode: Unsupported value: "quick": supported values: "fast", "slow"  (doubtful)`}},
		{reason: "a rule", object: replace(cache, "size: 1", "size: 10"),
			want: []string{`spec: Invalid value: too large  (doubtful)`}},
		{reason: "another version", object: replace(cache, "v1alpha1", "v1"),
			want: []string{"apiVersion: there is no Cache in cache.example.com/v1, as far as is known Known versions: v1alpha1. (doubtful)"}},
		{reason: "a removed version of a built-in kind", object: "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: a}}",
			want: []string{"apiVersion: there is no PodDisruptionBudget in policy/v1beta1, as far as is known Known versions: v1. (doubtful)"}},
		{reason: "a mistyped built-in kind", object: "{apiVersion: apps/v1, kind: Deploymnt, metadata: {name: a}}",
			want: []string{`kind: there is no Deploymnt in apps/v1, as far as is known Did you mean "Deployment"? (doubtful)`}},
		{reason: "a kind in the group of another", object: "{apiVersion: apps/v1, kind: Ingress, metadata: {name: a}}",
			want: []string{"kind: there is no Ingress in apps/v1, as far as is known Correct apiVersion and kind. (doubtful)"}},
		{reason: "a kind of a group that can have a CustomResourceDefinition", object: "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: a}}", unchecked: true},
		{reason: "a kind of another vendor", object: "{apiVersion: other.example.com/v1, kind: Other, metadata: {name: a}, spec: 1}", unchecked: true},
		{reason: "a kind of this engine", object: "{apiVersion: package-operator.run/v1alpha1, kind: Package, metadata: {name: a}, spec: {image: a, imag: b}}", unchecked: true},
		{reason: "a definition", object: crd},
		{reason: "a definition whose webhook has the default port", object: replace(crd, "scope: Namespaced",
			"scope: Namespaced\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: a}}}}")},
		{reason: "a binding of a role in the default group", object: "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {kind: Role, name: a}}"},
		{reason: "a version of a definition that is not stored", object: replace(crd, "  versions:\n", "  versions:\n  - {name: v1, served: false, schema: {openAPIV3Schema: {type: object}}}\n")},
		{reason: "an unknown field of a definition", object: replace(crd, "scope: Namespaced", "skope: Namespaced"),
			want: []string{`spec.skope: unknown field Did you mean "scope"?`, "spec.scope: required field is missing  (doubtful)"}},
		{reason: "a definition with a wrong name", object: replace(crd, "name: caches.cache", "name: cache.cache"),
			want: []string{`metadata.name: Invalid value: "cache.cache.example.com": must be spec.names.plural+"."+spec.group `}},
		{reason: "a definition whose schema is not structural", object: replace(crd, "status: {type: object, ", "status: {"),
			want: []string{"spec.versions[0].schema.openAPIV3Schema.properties[status].type: Required value: must not be empty for specified object fields "}},
		{reason: "a definition that takes too long to check", object: replace(crd, "x-kubernetes-validations: [{rule: \"self.metadata.name != 'x'\"}]",
			"x-kubernetes-validations: ["+manyRules()+"]"),
			want: []string{"spec.versions[0].schema.openAPIV3Schema: not checked: Invalid value: the schema has more than 1000 rules  (doubtful)"}},
		{reason: "a built-in kind", object: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dta: {}}",
			want: []string{`dta: unknown field Did you mean "data"?`}},
	} {
		checker, err := NewSession(nil).Checker([]*unstructured.Unstructured{yamltest.Object(t, crd)})
		require.NoError(t, err)
		obj := yamltest.Object(t, test.object)
		findings, checked, err := checker.Check(context.Background(), obj)
		if err != nil || checked == test.unchecked {
			t.Errorf("%s: checked %t, %v", test.reason, checked, err)
		}
		var got []string
		for _, f := range findings {
			text := fmt.Sprintf("%s: %s %s", f.Field, f.Problem, f.Remedy)
			if f.Doubtful {
				text += " (doubtful)"
			}
			got = append(got, text)
		}
		require.Equal(t, test.want, got, test.reason)
		require.Equal(t, yamltest.Object(t, test.object).Object, obj.Object, fmt.Sprintf("%s: the object was changed", test.reason))
	}
}

// manyRules returns more rules than are compiled.
func manyRules() string {
	var b strings.Builder
	for i := range limits.SchemaRules + 1 {
		fmt.Fprintf(&b, "{rule: 'true || %d > 0'},", i)
	}
	return b.String()
}

func TestHasField(t *testing.T) {
	t.Parallel()
	checker, err := NewSession(nil).Checker([]*unstructured.Unstructured{yamltest.Object(t, crd)})
	require.NoError(t, err)
	gvk := schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Cache"}
	for path, want := range map[string]bool{
		"status.ready": true, "status.raedy": false, "spec.free.anything.at.all": true, "spec.labels.any": true, "stat": false, "metadata.labels.a": true,
	} {
		require.Equal(t, want, checker.HasField(gvk, strings.Split(path, ".")), path)
	}
}

const widgetSchema = `{
	"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false,
	"properties": {
		"apiVersion": {}, "kind": {}, "metadata": {},
		"spec": {"$ref": "definitions.json#/definitions/spec"}
	}
}`

const widgetDefinitions = `{"definitions": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}, "color": {"enum": ["red", "blue"]}}}}}`

const widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 1, color: red}}"

func TestExpand(t *testing.T) {
	t.Parallel()
	apps := schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}
	for _, test := range []struct {
		pattern string
		gvk     schema.GroupVersionKind
		want    string
	}{
		{"a/{{ .Group }}/{{.ResourceKind}}_{{ .ResourceAPIVersion }}.json", apps, "a/networking.k8s.io/ingress_v1.json"},
		{"{{ .NormalizedKubernetesVersion }}-standalone{{ .StrictSuffix }}/{{- .ResourceKind -}}{{ .KindSuffix }}.json", apps, "v1.30.0-standalone-strict/ingress-networking-v1.json"},
		{"{{ .ResourceKind }}{{ .KindSuffix }}", schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pod-v1"},
	} {
		if got, err := expand(test.pattern, test.gvk, "1.30.0"); err != nil || got != test.want {
			t.Errorf("%s: %q, %v, want %q", test.pattern, got, err, test.want)
		}
	}
	if _, err := NewLocations([]string{`{{ printf "%1000000000d" 1 }}.json`}, LocationOptions{}); err == nil || !strings.Contains(err.Error(), "has no variable") {
		t.Errorf("a template: %v", err)
	}
}

func TestLocations(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	dir := filepath.Join(outside, "package")
	for name, text := range map[string]string{
		"package/schemas/widget.json": widgetSchema, "package/schemas/definitions.json": widgetDefinitions, "secret.json": widgetDefinitions,
		"package/broken/widget.json": "password: x", "package/large/widget.json": `"` + strings.Repeat("x", limits.SchemaFileBytes) + `"`,
		"package/leads/widget.json": `{"$ref": "file:///etc/passwd"}`,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(outside, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(outside, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret.json"), filepath.Join(dir, "link.json")))
	for _, test := range []struct {
		reason, location, object string
		found                    bool
		want                     []Finding
		err                      string
	}{
		{"a good one", "schemas/{{ .ResourceKind }}.json", widget, true, nil, ""},
		{"mistakes", "schemas/{{ .ResourceKind }}.json", strings.Replace(widget, "size: 1, color: red", "size: one, color: green", 1), true,
			[]Finding{{Field: "spec.color", Problem: "value must be one of 'red', 'blue'"}, {Field: "spec.size", Problem: "got string, want integer"}}, ""},
		{"an unknown field", "schemas/{{ .ResourceKind }}.json", strings.Replace(widget, "spec:", "status: {}, spec:", 1), true,
			[]Finding{{Problem: "additional properties 'status' not allowed"}}, ""},
		{"no file", "schemas/other-{{ .ResourceKind }}.json", widget, false, nil, ""},
		{"a path out of the folder stays in it", "../secret.json", widget, false, nil, ""},
		{"a link out of the folder", "link.json", widget, false, nil, "path escapes"},
		{"a reference out of the folder", "leads/{{ .ResourceKind }}.json", widget, false, nil, "etc/passwd is not a file of the package"},
		{"no JSON, which is not quoted", "broken/{{ .ResourceKind }}.json", widget, false, nil, "it is not valid JSON"},
		{"too large", "large/{{ .ResourceKind }}.json", widget, false, nil, "more than 8388608 bytes, which is the limit"},
		{"a URL without leave", "https://127.0.0.1:1/{{ .ResourceKind }}.json", widget, false, nil, ""},
	} {
		l, err := NewLocations([]string{"default", test.location}, LocationOptions{Folder: dir, KubernetesVersion: "v1.36.0"})
		require.NoError(t, err)
		got, found, err := l.Check(context.Background(), yamltest.Object(t, test.object))
		if (test.err == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "password")) {
			t.Errorf("%s: %v, want %q", test.reason, err, test.err)
		}
		require.Equal(t, test.found, found, fmt.Sprintf("%s: found", test.reason))
		require.Equal(t, test.want, got, test.reason)
	}
}
