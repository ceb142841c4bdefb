package kickstart

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/loader/violation"
)

// object is one object on its way into the package.
type object struct {
	gvk schema.GroupVersionKind
	// value is the object as JSON has it; an expression in it is of type
	// expression.
	value map[string]any
	// at says where it came from.
	at violation.Violation

	// id is the identity of the object.
	id    string
	phase string
	// fileName is the name in the name of its file, where it is not the object's.
	fileName string
	// hook is what Helm does with it; nil for an ordinary object.
	hook *hook
}

// expression is a template expression in the place of a value.
type expression string

func (o *object) name() string { return text(o.value, "metadata", "name") }

func (o *object) namespace() string { return text(o.value, "metadata", "namespace") }

func (o *object) kind() schema.GroupKind { return o.gvk.GroupKind() }

// identity is unique in a package, and the same in every release.
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

// dig walks into nested maps; nil where there is nothing.
func dig(v any, path ...string) any {
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func text(v any, path ...string) string {
	s, _ := dig(v, path...).(string)
	return s
}

// child returns the map at a path and makes it where it is missing.
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

// annotation returns an annotation of the object.
func (o *object) annotation(key string) (string, bool) {
	annotations, _ := dig(o.value, "metadata", "annotations").(map[string]any)
	value, ok := annotations[key]
	s, isText := value.(string)
	if !isText && ok {
		s = fmt.Sprint(value)
	}
	return s, ok
}

func (o *object) annotate(key, value string) { child(o.value, "metadata", "annotations")[key] = value }

// dropMeta removes labels or annotations, and the map when nothing is left.
func (o *object) dropMeta(field string, drop func(key string, value any) bool) {
	meta, _ := o.value["metadata"].(map[string]any)
	m, _ := meta[field].(map[string]any)
	for key, value := range m {
		if drop(key, value) {
			delete(m, key)
		}
	}
	if len(m) == 0 {
		delete(meta, field)
	}
}
