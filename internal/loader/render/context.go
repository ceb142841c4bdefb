package render

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
)

// Context returns the context of templates and expressions. Numbers are float64.
func Context(pkg manifestsv1alpha1.TemplateContextPackage, env manifestsv1alpha1.PackageEnvironment,
	config map[string]any, images, dependencies map[string]string,
) (map[string]any, error) {
	if pkg.Metadata.Labels == nil {
		pkg.Metadata.Labels = map[string]string{}
	}
	if pkg.Metadata.Annotations == nil {
		pkg.Metadata.Annotations = map[string]string{}
	}

	value, err := jsonValues(map[string]any{
		"package": pkg, "environment": env, "config": config, "images": images, "dependencies": dependencies,
	})
	if err != nil {
		return nil, err
	}

	return value.(map[string]any), nil
}

// jsonValues converts a value by a round trip through JSON.
func jsonValues(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	err = json.Unmarshal(data, &out)
	return out, err
}

// context returns a copy of the context for one template, because functions such as set modify it.
// It remembers the addresses of empty labels and annotations for index.
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

// index is text/template's index, but a missing label or annotation of a Package is empty text, as
// in Package Operator.
func (r *renderer) index(item any, keys ...any) (any, error) {
	for _, key := range keys {
		value, err := elementAt(reflect.ValueOf(item), reflect.ValueOf(key))
		if err != nil {
			return nil, err
		}
		if texts, ok := item.(map[string]any); value == nil && ok && r.unset[reflect.ValueOf(texts).Pointer()] != nil {
			value = ""
		}
		item = value
	}
	return item, nil
}

// elementAt returns an element of a map, list or text, with the errors of text/template.
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
