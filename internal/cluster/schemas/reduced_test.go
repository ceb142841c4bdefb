package schemas

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/test/yamltest"
)

// Parts of a path can be values of a Secret: a key of a map, the name of a field, a port.
func TestReduced(t *testing.T) {
	t.Parallel()
	const value = "s3cr3t.value"
	for _, test := range []struct {
		reason, object  string
		elements, names string
	}{
		{"an undeclared field", strings.Replace(deployment, "replicas: 2", value+": 2", 1),
			".spec." + value, ".spec.*"},
		{"a key of a map", strings.Replace(deployment, "matchLabels: {app: web}", "matchLabels: {"+value+": 1}", 1),
			".spec.selector.matchLabels." + value, ".spec.selector.matchLabels.*"},
		{"an element", strings.Replace(deployment, "ports: [{containerPort: 80}]", "ports: [{containerPort: 54321, name: "+value+", hostPorts: 1}]", 1),
			`.spec.template.spec.containers[*].ports[*].hostPorts: field not declared in schema, did you mean "hostPort"?`,
			".spec.template.spec.containers[*].ports[*].*: field not declared in schema"},
		{"an element that is there twice", strings.Replace(deployment, "[{name: A, value: b}", "[{name: "+value+", value: a}, {name: "+value+", value: b}", 1),
			".spec.template.spec.containers[*].env: duplicate entries", ".spec.template.spec.containers[*].env: duplicate entries"},
	} {
		err := newServer(t).checker(t).Check(t.Context(), []*unstructured.Unstructured{{Object: yamltest.Decode(t, test.object)}})[0]
		var invalid *InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		if got := invalid.Reduced(false); !strings.HasPrefix(got, test.elements) || strings.Contains(got, "54321") {
			t.Errorf("%s: %q, want %q", test.reason, got, test.elements)
		}
		if got := invalid.Reduced(true); !strings.HasPrefix(got, test.names) || strings.Contains(got, "s3cr3t") || strings.Contains(got, "54321") {
			t.Errorf("%s: %q, want %q", test.reason, got, test.names)
		}
	}
	odd := &InvalidError{Fields: []FieldError{{Path: ".a[" + value, Problem: value}}}
	if got := odd.Reduced(false); strings.Contains(got, value) || got == "" {
		t.Errorf("what cannot be read becomes %q", got)
	}
}
