package applies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi3"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// leaves are the values of an object by their paths: scalars, empty maps and lists, and maps
// and lists that are one value. Elements of other lists are named by their keys.
type leaves map[string]any

// shapes know which lists and maps of a kind are atomic, and the keys of the elements of the
// others. They take that from the schemas, as the API server does.
type shapes struct {
	schemas    openapi3.Root
	mu         sync.Mutex
	converters map[schema.GroupVersion]managedfields.TypeConverter
	kinds      map[schema.GroupVersionKind]map[string]shape // by the path without keys
}

// shape is one of: one value, a set, or a list with keys.
type shape struct {
	atomic, set bool
	keys        []string
}

func newShapes(client openapi.Client) *shapes {
	return &shapes{
		schemas:    openapi3.NewRoot(client),
		converters: map[schema.GroupVersion]managedfields.TypeConverter{},
		kinds:      map[schema.GroupVersionKind]map[string]shape{},
	}
}

// learn adds the shapes of an object's lists and maps.
func (s *shapes) learn(object map[string]any) error {
	gvk := gvkOf(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	converter := s.converters[gvk.GroupVersion()]
	if converter == nil {
		spec, err := s.schemas.GVSpec(gvk.GroupVersion())
		if err != nil {
			return err
		}
		if converter, err = managedfields.NewTypeConverter(spec.Components.Schemas, false); err != nil {
			return err
		}
		s.converters[gvk.GroupVersion()] = converter
	}
	value, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: object}, typed.AllowDuplicates)
	if err != nil {
		return err
	}
	set, err := value.ToFieldSet()
	if err != nil {
		return err
	}
	if s.kinds[gvk] == nil {
		s.kinds[gvk] = map[string]shape{}
	}
	learnShapes(s.kinds[gvk], set, object)
	return nil
}

func learnShapes(known map[string]shape, set *fieldpath.Set, object map[string]any) {
	for path := range set.All() {
		pattern := ""
		for _, element := range path {
			switch {
			case element.Key != nil:
				var keys []string
				for _, field := range *element.Key {
					keys = append(keys, field.Name)
				}
				known[pattern] = shape{keys: keys}
				pattern += "/*"
			case element.Value != nil:
				known[pattern] = shape{set: true}
				pattern += "/*"
			case element.FieldName != nil:
				pattern += "/" + *element.FieldName
			}
		}
	}
	for path := range set.Leaves().All() {
		pattern := ""
		for _, element := range path {
			if element.FieldName != nil {
				pattern += "/" + *element.FieldName
			} else {
				pattern += "/*"
			}
		}
		if path[len(path)-1].FieldName != nil && isCollection(at(object, path)) && known[pattern].keys == nil {
			known[pattern] = shape{atomic: true}
		}
	}
}

func isCollection(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) > 0
	case []any:
		return len(v) > 0
	}
	return false
}

// at returns the value at a path of an object, or nil.
func at(value any, path fieldpath.Path) any {
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			m, _ := value.(map[string]any)
			value = m[*element.FieldName]
		case element.Key != nil:
			list, _ := value.([]any)
			value = nil
			for _, candidate := range list {
				if m, ok := candidate.(map[string]any); ok && hasKey(m, element) {
					value = candidate
				}
			}
		default:
			return nil
		}
	}
	return value
}

func hasKey(m map[string]any, element fieldpath.PathElement) bool {
	for _, field := range *element.Key {
		if v, has := m[field.Name]; has && fmt.Sprint(v) != fmt.Sprint(field.Value.Unstructured()) {
			return false
		}
	}
	return true
}

// of returns the leaves of an object, whose shapes were learned from it or a similar one.
func (s *shapes) of(object map[string]any) leaves {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := flattening{shapes: s.kinds[gvkOf(object)], leaves: leaves{}}
	for field, value := range object {
		if field != "apiVersion" && field != "kind" && field != "status" {
			f.flatten("/"+field, "/"+field, value)
		}
	}
	return f.leaves
}

type flattening struct {
	shapes map[string]shape
	leaves leaves
}

func (f *flattening) flatten(path, pattern string, value any) {
	is := f.shapes[pattern]
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 || is.atomic {
			break
		}
		for field, child := range v {
			f.flatten(path+"/"+escaped(field), pattern+"/"+field, child)
		}
		return
	case []any:
		if len(v) == 0 || !is.set && is.keys == nil {
			break
		}
		for _, child := range v {
			id, _ := json.Marshal(child)
			if m, ok := child.(map[string]any); ok && is.keys != nil {
				id, _ = json.Marshal(keyOf(m, is.keys))
			}
			f.flatten(path+"/"+escaped(string(id)), pattern+"/*", child)
		}
		return
	}
	f.leaves[path] = value
}

// keyOf returns the fields that name an element. A protocol that is left out is TCP.
func keyOf(m map[string]any, keys []string) map[string]any {
	key := map[string]any{}
	for _, name := range keys {
		value, has := m[name]
		if !has && name == "protocol" {
			value, has = "TCP", true
		}
		if has {
			key[name] = value
		}
	}
	return key
}

func escaped(segment string) string { return strings.ReplaceAll(segment, "/", "~1") }

// paths returns the sorted paths of several leaves.
func paths(of ...leaves) []string {
	all := leaves{}
	for _, some := range of {
		maps.Copy(all, some)
	}
	return slices.Sorted(maps.Keys(all))
}

// state returns the part of an object that Lockstep and its users write: without the status, but
// with managedFields.
func state(object map[string]any) map[string]any {
	u := (&unstructured.Unstructured{Object: object}).DeepCopy()
	delete(u.Object, "status")
	u.SetResourceVersion("")
	u.SetManagedFields(slices.DeleteFunc(u.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Subresource == "status" }))
	return u.Object
}

var generatedVolume = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`)

// normalise returns an object without the values that differ between two objects of the same
// content: names, metadata that the API server or the engine writes, and allocated values.
func normalise(object map[string]any, name string) map[string]any {
	u := (&unstructured.Unstructured{Object: object}).DeepCopy()
	uid := string(u.GetUID())
	metadata := map[string]any{}
	if labels := without(u.GetLabels()); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if annotations := without(u.GetAnnotations()); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if finalizers := u.GetFinalizers(); len(finalizers) > 0 {
		metadata["finalizers"] = finalizers
	}
	if u.Object["metadata"] = metadata; len(metadata) == 0 {
		delete(u.Object, "metadata")
	}
	delete(u.Object, "status")
	raw, err := json.Marshal(u.Object)
	if err != nil {
		panic(err)
	}
	text := strings.ReplaceAll(string(raw), name, "NAME")
	if uid != "" {
		text = strings.ReplaceAll(text, uid, "UID")
	}
	text = generatedVolume.ReplaceAllString(text, "kube-api-access-xxxxx")
	text = strings.ReplaceAll(text, `"creationTimestamp":null,`, "")
	normal := parse(text).(map[string]any)
	allocated(normal)
	return normal
}

// without omits the labels or annotations of the engine, of kubectl apply and of the API server.
func without(entries map[string]string) map[string]any {
	left := map[string]any{}
	for key, value := range entries {
		engines := strings.HasPrefix(key, "package-operator.run/") && key != "package-operator.run/on-immutable"
		if !engines && key != lastApplied && key != "deprecated.daemonset.template.generation" {
			left[key] = value
		}
	}
	return left
}

// allocated hides addresses and ports of a Service that the API server chose.
func allocated(object map[string]any) {
	if gvkOf(object).Kind != "Service" {
		return
	}
	spec, _ := object["spec"].(map[string]any)
	if ip, has := spec["clusterIP"]; has && ip != "None" {
		spec["clusterIP"], spec["clusterIPs"] = "allocated", []any{"allocated"}
	}
	if _, has := spec["healthCheckNodePort"]; has {
		spec["healthCheckNodePort"] = int64(30000)
	}
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if m, ok := port.(map[string]any); ok && m["nodePort"] != nil {
			m["nodePort"] = int64(30000)
		}
	}
}
