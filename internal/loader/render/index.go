package render

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// context returns a copy of the context for one template.
func (r *renderer) context() any {
	context := runtime.DeepCopyJSON(r.in.Context)
	pkg, _ := context["package"].(map[string]any)
	metadata, _ := pkg["metadata"].(map[string]any)
	for _, key := range []string{"labels", "annotations"} {
		if texts, ok := metadata[key].(map[string]any); ok && len(texts) == 0 {
			r.unset[reflect.ValueOf(texts).Pointer()] = texts
		}
	}
	return context
}

// index is that of text/template, but a missing key in empty labels or annotations of a
// Package is empty text and not <no value>, as by Package Operator.
func (r *renderer) index(item any, keys ...any) (any, error) {
	for _, key := range keys {
		value, err := elementAt(reflect.ValueOf(item), reflect.ValueOf(key))
		if err != nil {
			return nil, err
		}
		if value == nil && r.isUnset(item) {
			value = ""
		}
		item = value
	}
	return item, nil
}

func (r *renderer) isUnset(item any) bool {
	texts, ok := item.(map[string]any)
	return ok && r.unset[reflect.ValueOf(texts).Pointer()] != nil
}

func elementAt(item, key reflect.Value) (any, error) {
	if !key.IsValid() {
		return nil, fmt.Errorf("cannot index with nil")
	}
	switch item.Kind() {
	case reflect.Map:
		if !key.Type().AssignableTo(item.Type().Key()) {
			return nil, fmt.Errorf("value has type %s; should be %s", key.Type(), item.Type().Key())
		}
		if value := item.MapIndex(key); value.IsValid() {
			return value.Interface(), nil
		}
		return reflect.Zero(item.Type().Elem()).Interface(), nil
	case reflect.Slice, reflect.Array, reflect.String:
		if !key.CanInt() && !key.CanUint() {
			return nil, fmt.Errorf("cannot index a list or text with type %s", key.Type())
		}
		at := key.Convert(reflect.TypeFor[int64]()).Int()
		if at < 0 || at >= int64(item.Len()) {
			return nil, fmt.Errorf("index out of range: %d", at)
		}
		return item.Index(int(at)).Interface(), nil
	case reflect.Invalid:
		return nil, fmt.Errorf("index of untyped nil")
	default:
		return nil, fmt.Errorf("cannot index item of type %s", item.Type())
	}
}
