package plan_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// disturb simulates other clients before an upgrade, and plans changes that the upgrade cannot
// make. It returns a description.
func (c *chain) disturb(tb testing.TB, next *draft) string {
	r := c.random
	at := pick(r, c.draft.objects)
	switch r.IntN(9) {
	case 0:
		c.edit(tb, at, `{"metadata":{"labels":{"foreign":"yes"},"annotations":{"foreign":"too"}}}`)
		return "a foreign label on " + at.kind + " " + at.name
	case 1:
		if p := of(next, "ConfigMap"); p != nil && has(c.draft, p) {
			c.edit(tb, p, `{"data":{"foreign":"theirs"}}`)
			p.data["foreign"] = "ours"
			return "a foreign key that the upgrade sets, on " + p.name
		}
	case 2:
		if p := of(next, pick(r, []string{"Deployment", "RoleBinding"})); p != nil && has(c.draft, p) {
			p.frozen = map[string]string{"first": "second", "second": "first"}[p.frozen]
			if r.IntN(2) == 0 {
				p.annotations["package-operator.run/on-immutable"] = "Recreate"
			}
			return "a field of " + p.kind + " " + p.name + " that cannot be changed"
		}
	case 3, 4:
		return c.obstruct(tb, next)
	case 5:
		if p := of(next, pick(r, []string{"ConfigMap", "Gauge"})); p != nil && has(c.draft, p) && p.data["a"] != "" {
			c.set(tb, func(spec *corev1alpha1.PackageSpec) { spec.Paused = true })
			c.env.WaitCondition(tb, c.namespace, "drawn", corev1alpha1.ConditionPaused, "True")
			c.edit(tb, p, map[string]string{"ConfigMap": `{"data":{"a":"drifted"}}`, "Gauge": `{"spec":{"marks":{"a":"drifted"}}}`}[p.kind])
			return "a field of " + p.kind + " " + p.name + " that a user changed while the package was paused"
		}
	}
	return "nothing"
}

func of(d *draft, kind string) *piece {
	for _, p := range d.objects {
		if p.kind == kind {
			return p
		}
	}
	return nil
}

func has(d *draft, like *piece) bool {
	return slices.ContainsFunc(d.objects, func(p *piece) bool { return p.kind == like.kind && p.name == like.name })
}

// obstruct creates a foreign object that the upgrade also contains.
func (c *chain) obstruct(tb testing.TB, next *draft) string {
	p := next.add(c.random)
	p.kind = "ConfigMap"
	c.draft.next = next.next // its name is taken
	obj := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"theirs": "1", "a": "theirs"}}}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	obj.SetNamespace(c.namespace)
	obj.SetName(p.name)
	controlled := c.random.IntN(2) == 0
	if controlled {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: c.namespace, UID: c.uid(tb), Controller: ptr.To(true)}})
	}
	require.NoError(tb, c.env.Client.Create(tb.Context(), obj, client.FieldOwner("someone")))
	mode := pick(c.random, []string{"Prevent", "IfNoController", "None", "None"})
	p.annotations["package-operator.run/collision-protection"] = mode
	return fmt.Sprintf("foreign ConfigMap %s, controlled %t, mode %s", p.name, controlled, mode)
}

// uid returns the UID of the chain's namespace, which serves as a foreign controller.
func (c *chain) uid(tb testing.TB) types.UID {
	ns := &unstructured.Unstructured{}
	ns.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	require.NoError(tb, c.env.Client.Get(tb.Context(), types.NamespacedName{Name: c.namespace}, ns))
	return ns.GetUID()
}

var versions = map[string]schema.GroupVersion{
	"ConfigMap": {Version: "v1"}, "Secret": {Version: "v1"}, "Service": {Version: "v1"}, "Deployment": {Group: "apps", Version: "v1"},
	"Role": {Group: "rbac.authorization.k8s.io", Version: "v1"}, "RoleBinding": {Group: "rbac.authorization.k8s.io", Version: "v1"},
	"Gauge": {Group: "generated.example.com", Version: "v1"},
}

// edit changes an object as another field manager.
func (c *chain) edit(tb testing.TB, p *piece, patch string) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(versions[p.kind].WithKind(p.kind))
	obj.SetNamespace(c.namespace)
	obj.SetName(p.name)
	require.NoError(tb, c.env.Client.Patch(tb.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("someone")))
}
