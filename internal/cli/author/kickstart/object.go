package kickstart

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/fields"
	"lockstep.run/lockstep/internal/loader/violation"
)

// object is one object of the input.
type object struct {
	gvk schema.GroupVersionKind
	// value is the object as JSON values and expressions.
	value map[string]any
	// at is its place in the input.
	at violation.Violation

	// id is unique in a package, and the same in every release.
	id    string
	phase string
	// fileName replaces the name of the object in that of its file.
	fileName string
	// hook is nil for an ordinary object.
	hook *hook
}

// expression is a template expression that stands for a value.
type expression string

func (o *object) name() string { return fields.Text(o.value, "metadata", "name") }

func (o *object) namespace() string { return fields.Text(o.value, "metadata", "namespace") }

func (o *object) kind() schema.GroupKind { return o.gvk.GroupKind() }

func identity(kind schema.GroupKind, namespace, name string) string {
	return kind.String() + " " + namespace + "/" + name
}

// is reports whether the object is of a kind, in any version.
func (o *object) is(group, kind string) bool { return o.gvk.Group == group && o.gvk.Kind == kind }

// String names the object in messages.
func (o *object) String() string {
	if ns := o.namespace(); ns != "" {
		return fmt.Sprintf("%s %s/%s", o.gvk.Kind, ns, o.name())
	}
	return o.gvk.Kind + " " + o.name()
}

// child returns the map at a path, which it makes if it is missing.
func child(v map[string]any, path ...string) map[string]any {
	for _, key := range path {
		next, ok := v[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			v[key] = next
		}
		v = next
	}
	return v
}

func (o *object) annotation(key string) (string, bool) {
	value, ok := fields.Map(o.value, "metadata", "annotations")[key]
	if s, isText := value.(string); isText || !ok {
		return s, ok
	}
	return fmt.Sprint(value), true
}

func (o *object) annotate(key, value string) { child(o.value, "metadata", "annotations")[key] = value }

// dropMeta removes labels or annotations, and the map if it becomes empty.
func (o *object) dropMeta(field string, drop func(key string, value any) bool) {
	meta := fields.Map(o.value, "metadata")
	m := fields.Map(meta, field)
	for key, value := range m {
		if drop(key, value) {
			delete(m, key)
		}
	}
	if len(m) == 0 {
		delete(meta, field)
	}
}
