package drift

import (
	"encoding/json"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

func copyOf(value map[string]any) map[string]any { return runtime.DeepCopyJSON(value) }

// cluster runs the API server's own code for one object: it applies, updates and maintains
// managedFields by the real schemas.
type cluster struct {
	t      testing.TB
	kind   schema.GroupVersionKind
	fields managedfieldstest.TestFieldManager
}

func newCluster(t testing.TB, document string, kind schema.GroupVersionKind) *cluster {
	t.Helper()
	text, err := os.ReadFile("../../cluster/schemas/testdata/" + document)
	require.NoError(t, err)
	var content struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(text, &content))
	converter, err := managedfields.NewTypeConverter(content.Components.Schemas, false)
	require.NoError(t, err)
	return &cluster{t: t, kind: kind, fields: managedfieldstest.NewTestFieldManager(converter, kind)}
}

// object adds the kind.
func (c *cluster) object(text string) *unstructured.Unstructured {
	c.t.Helper()
	obj := &unstructured.Unstructured{Object: yamltest.Decode(c.t, text)}
	obj.SetGroupVersionKind(c.kind)
	return obj
}

func (c *cluster) apply(manager, text string) {
	c.t.Helper()
	if err := c.fields.Apply(c.object(text), manager, true); err != nil {
		c.t.Fatal(err)
	}
}

// update changes the live object like an UPDATE or PATCH of a manager.
func (c *cluster) update(manager string, change func(obj map[string]any)) {
	c.t.Helper()
	obj := &unstructured.Unstructured{Object: copyOf(c.live().Object)}
	change(obj.Object)
	if err := c.fields.Update(obj, manager); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) live() *unstructured.Unstructured {
	return c.fields.Live().(*unstructured.Unstructured)
}

func (c *cluster) known() *ListTypes { return LearnListTypes(c.live().GetManagedFields()) }

func (c *cluster) managers() map[string]metav1.ManagedFieldsOperationType {
	managers := map[string]metav1.ManagedFieldsOperationType{}
	for _, entry := range c.live().GetManagedFields() {
		managers[entry.Manager] = entry.Operation
	}
	return managers
}

// at navigates maps by key, and lists by index.
func at(t testing.TB, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			value = value.(map[string]any)[step]
		case int:
			value = value.([]any)[step]
		}
	}
	return value
}

func fieldsAt(t testing.TB, value any, path ...any) map[string]any {
	t.Helper()
	return at(t, value, path...).(map[string]any)
}
