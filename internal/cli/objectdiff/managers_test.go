package objectdiff_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/test/require"
)

// TestManagers finds the managers of a field.
func TestManagers(t *testing.T) {
	t.Parallel()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	status := entry("controller", `{"f:spec":{"f:replicas":{}}}`)
	status.Subresource = "scale"
	u.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry("package-operator", `{"f:spec":{"f:replicas":{}}}`), status,
		entry("autoscaler", `{"f:spec":{"f:replicas":{}}}`),
		entry("editor", `{"f:metadata":{"f:labels":{"f:example.com/team":{}}},"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}}}},"f:selector":{},"f:ports":{"k:{\"port\":53,\"protocol\":\"UDP\"}":{".":{}}},"f:tls":{"k:{\"host\":\"a.example.com,b.example.com\"}":{"f:secret":{}}},"f:env":{"k:{\"name\":\"A,B\"}":{"f:value":{}}}},"f:rules":{}}`),
	})
	m := objectdiff.ManagersOf(u, "package-operator")
	for path, want := range map[string][]string{
		"spec.replicas": {"autoscaler"},
		"spec.template.spec.containers[name=web].image":     {"editor"},
		"spec.template.spec.containers[name=web]":           {"editor"},
		"spec.template.spec.containers[name=db].image":      nil,
		"spec.ports[port=53,protocol=UDP]":                  {"editor"},
		"spec.ports[port=53,protocol=TCP]":                  nil,
		"spec.ports[protocol=UDP,port=53]":                  {"editor"},
		"spec.ports[port=53]":                               {"editor"},
		"spec.tls[host=a.example.com,b.example.com].secret": {"editor"},
		"spec.tls[host=a.example.com].secret":               nil,
		"spec.env[name=A,B].value":                          {"editor"},
		"spec.env[name=A,B,C].value":                        nil,
		"spec.env[name=A].value":                            nil,
		"spec.selector.matchLabels.app":                     {"editor"},
		`metadata.labels["example.com/team"]`:               {"editor"},
		"metadata.labels":                                   {"editor"},
		"rules[0].verbs":                                    {"editor"},
		"spec.paused":                                       nil,
		"spec[":                                             nil,
		`spec["["]`:                                         nil,
	} {
		require.Equal(t, want, m.Of(path), path)
	}
}
