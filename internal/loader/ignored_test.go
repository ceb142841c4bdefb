package loader

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// The object, the manifest and the Package can state fields that others own. They all end up in the
// annotation.
func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	entry := func(kind, name string, pointers ...string) corev1alpha1.IgnoredFields {
		return corev1alpha1.IgnoredFields{Kind: kind, Name: name, JSONPointers: pointers}
	}

	of := func(all ...corev1alpha1.IgnoredFields) func(*Options) {
		return func(o *Options) { o.IgnoredFields = all }
	}
	const own = "    package-operator.run/ignored-fields: "
	for name, tc := range map[string]struct {
		manifest, more string
		change         func(*Options)
		want, problem  string
	}{
		"none":                 {change: of()},
		"of the object":        {more: own + "/data/b\n", change: of(), want: "/data/b"},
		"of the manifest":      {manifest: "  ignoredFields: [{kind: ConfigMap, jsonPointers: [/data/a]}, {kind: Secret, jsonPointers: [/data/a]}]\n", change: of(), want: "/data/a"},
		"of all":               {manifest: "  ignoredFields: [{kind: ConfigMap, jsonPointers: [/data/a]}]\n", more: own + "/data/b\n", change: of(entry("ConfigMap", "a", "/data/c", "/data/a")), want: "/data/a\n/data/b\n/data/c"},
		"of no object":         {change: of(entry("ConfigMap", "other", "/data/a")), problem: "spec.ignoredFields[0]: it matches no object of the package"},
		"protected":            {change: of(entry("ConfigMap", "", "/kind")), problem: `spec.ignoredFields[0].jsonPointers[0]: "/kind" identifies the object`},
		"protected there":      {manifest: "  ignoredFields: [{kind: ConfigMap, jsonPointers: [/metadata/name]}]\n", change: of(), problem: `spec.ignoredFields[0].jsonPointers[0]: "/metadata/name" is in the metadata`},
		"protected here":       {more: own + "/metadata/labels/package-operator.run~1cache\n", change: of(), problem: "is set by the engine"},
		"no kind":              {change: of(entry("", "", "/data/a")), problem: "spec.ignoredFields[0].kind: Required value"},
		"no field":             {change: of(entry("ConfigMap", "")), problem: "spec.ignoredFields[0].jsonPointers: Required value"},
		"too many":             {change: of(entry("ConfigMap", "", strings.Split(strings.Repeat("/data/a ", 33), " ")[:33]...)), problem: "33 fields; the limit is 32"},
		"too many entries":     {change: of(make([]corev1alpha1.IgnoredFields, 101)...), problem: "101 entries; the limit is 100"},
		"an element":           {more: own + "/immutable/0\n", change: of(), want: "/immutable/0"},
		"an element of a list": {more: "    a: b\n  finalizers: [a.b/c]\nlist: [a]\n", change: of(entry("ConfigMap", "", "/list/0")), problem: `"/list/0" is an element of a list`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := pkg("manifest.yaml", plain+tc.manifest, "a.yaml", configMap("a", "first", tc.more))
			if tc.problem != "" {
				if got := lines(t, files, namespaced(tc.change)); !strings.Contains(got, tc.problem) {
					t.Errorf("got %s, want %s", got, tc.problem)
				}
				return
			}
			p, err := Load(context.Background(), files, namespaced(tc.change))
			require.NoError(t, err)
			var u unstructured.Unstructured
			require.NoError(t, json.Unmarshal(p.Phases[0].Objects[0].Object.Raw, &u.Object))
			if got := u.GetAnnotations()[corev1alpha1.IgnoredFieldsAnnotation]; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
