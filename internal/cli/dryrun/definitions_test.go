package dryrun

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

func crd(t *testing.T, scope, versions string) *unstructured.Unstructured {
	t.Helper()
	return yamltest.Object(t, `{"spec":{"scope":"`+scope+`","names":{"kind":"Widget","plural":"widgets"},"versions":[`+versions+`]}}`)
}

// TestDefinitionLosses is about the losses of a changed definition.
func TestDefinitionLosses(t *testing.T) {
	t.Parallel()
	version := func(name, flags, properties string) string {
		return `{"name":"` + name + `",` + flags + `,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{` + properties + `}}}}}}`
	}
	const stored, served = `"served":true,"storage":true`, `"served":true,"storage":false`
	size := `"size":{"type":"integer"}`
	nested := `"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}`
	for _, tc := range []struct {
		reason        string
		before, after *unstructured.Unstructured
		want          []string
	}{
		{"the same", crd(t, "Cluster", version("v1", stored, size)), crd(t, "Cluster", version("v1", stored, size)), nil},
		{"a new version and field", crd(t, "Cluster", version("v1", stored, size)), crd(t, "Cluster", version("v1", stored, size+`,"unit":{}`)+","+version("v2", served, size)), nil},
		{"a version less", crd(t, "Cluster", version("v1", stored, size)+","+version("v0", served, size)), crd(t, "Cluster", version("v1", stored, size)), []string{"version v0 is dropped"}},
		{"not served any more", crd(t, "Cluster", version("v1", stored, size)), crd(t, "Cluster", version("v1", `"served":false,"storage":true`, size)), []string{"does not serve version v1"}},
		{
			"stored in another version", crd(t, "Cluster", version("v1", stored, size)+","+version("v2", served, size)),
			crd(t, "Cluster", version("v1", served, size)+","+version("v2", stored, size)), []string{"stored in version v2 instead of v1"},
		},
		{"a field less, in a list", crd(t, "Cluster", version("v1", stored, nested)), crd(t, "Cluster", version("v1", stored, strings.Replace(nested, `,"b":{"type":"string"}`, "", 1))), []string{"field .spec.list[].b leaves the schema of v1"}},
		{
			"a field less that is still kept", crd(t, "Cluster", version("v1", stored, `"any":{"type":"object","properties":{"a":{}}}`)),
			crd(t, "Cluster", version("v1", stored, `"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true}`)), nil,
		},
		{
			"fields that were kept without being named", crd(t, "Cluster", version("v1", stored, `"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{}}}`)),
			crd(t, "Cluster", version("v1", stored, `"any":{"type":"object","properties":{"a":{}}}`)), []string{"values in .spec.any that the schema of v1 does not name are no longer kept"},
		},
	} {
		got := definitionLosses(definitionOf(tc.before), definitionOf(tc.after))
		if len(got) != len(tc.want) {
			t.Errorf("%s: %v", tc.reason, got)
			continue
		}
		for i := range got {
			require.Contains(t, got[i], tc.want[i], tc.reason)
		}
	}
}

// TestDefinitions is about resources whose definition is created or changed.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	const version = `{"name":"%s","served":%s,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%s}}}}}}`
	crd := func(versions ...string) *unstructured.Unstructured {
		return yamltest.Object(t, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"dials.example.com"},`+
			`"spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Dial","plural":"dials"},"versions":[`+strings.Join(versions, ",")+`]}}`)
	}
	size, unit := `"size":{"type":"integer"}`, `"size":{"type":"integer"},"unit":{"type":"string"}`
	for _, tc := range []struct {
		reason      string
		before, now *unstructured.Unstructured
		resource    string
		why, wrong  string
	}{
		{"another kind", nil, crd(fmt.Sprintf(version, "v1", "true", size)), `{"apiVersion":"example.com/v1","kind":"Other"}`, "", ""},
		{"a new kind", nil, crd(fmt.Sprintf(version, "v1", "true", size)), `{"apiVersion":"example.com/v1","kind":"Dial","spec":{"size":1}}`, "creates or changes", ""},
		{"as it was", crd(fmt.Sprintf(version, "v1", "true", size)), crd(fmt.Sprintf(version, "v1", "true", size)), `{"apiVersion":"example.com/v1","kind":"Dial","spec":{"unit":"x"}}`, "", ""},
		{"a new field", crd(fmt.Sprintf(version, "v1", "true", size)), crd(fmt.Sprintf(version, "v1", "true", unit)), `{"apiVersion":"example.com/v1","kind":"Dial","spec":{"unit":"x"}}`, "creates or changes", ""},
		{"another version changes", crd(fmt.Sprintf(version, "v1", "true", size)), crd(fmt.Sprintf(version, "v1", "true", size), fmt.Sprintf(version, "v2", "true", unit)), `{"apiVersion":"example.com/v1","kind":"Dial","spec":{"size":1}}`, "", ""},
		{"a version that is not served", nil, crd(fmt.Sprintf(version, "v1", "false", size), fmt.Sprintf(version, "v2", "true", size)), `{"apiVersion":"example.com/v1","kind":"Dial"}`, "", "does not serve version v1 but v2"},
	} {
		d := newDefinitions()
		d.learn(tc.before, tc.now)
		u := yamltest.Object(t, tc.resource)
		why, err := d.validate(u.GroupVersionKind())
		if (why == "") != (tc.why == "") || !strings.Contains(why, tc.why) {
			t.Errorf("%s: %q", tc.reason, why)
		}
		if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}
