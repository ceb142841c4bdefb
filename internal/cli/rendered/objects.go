package rendered

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/loader"
)

// Object is one final object of a package.
type Object struct {
	// Phase of the rollout, and its number from 1.
	Phase  string
	Number int

	Group, Kind, Namespace, Name string

	raw json.RawMessage
}

// MarshalJSON implements json.Marshaler, with apiVersion, kind and metadata first.
func (o Object) MarshalJSON() ([]byte, error) { return o.raw, nil }

// Objects returns the objects of a package in the order of their rollout.
func Objects(pkg *loader.Package) ([]Object, error) {
	var out []Object
	for i, phase := range pkg.Phases {
		for _, stored := range phase.Objects {
			o, err := finish(stored.Object.Raw, pkg.Labels)
			if err != nil {
				return nil, fmt.Errorf("phase %s: %w", phase.Name, err)
			}
			o.Phase, o.Number = phase.Name, i+1
			out = append(out, o)
		}
	}
	return out, nil
}

// finish adds the labels that the engine sets.
func finish(raw []byte, labels map[string]string) (Object, error) {
	var body map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&body); err != nil {
		return Object{}, fmt.Errorf("an object cannot be read: %w", err)
	}
	u := unstructured.Unstructured{Object: body}
	all := u.GetLabels()
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, labels)
	if len(all) > 0 {
		u.SetLabels(all)
	}
	o := Object{Group: u.GroupVersionKind().Group, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	var err error
	o.raw, err = ordered(body)
	return o, err
}

// ordered encodes an object with what identifies it first.
func ordered(body map[string]any) (json.RawMessage, error) {
	head := []string{"apiVersion", "kind", "metadata"}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(body)), func(key string) bool { return slices.Contains(head, key) })
	var b bytes.Buffer
	b.WriteByte('{')
	for _, key := range append(head, keys...) {
		value, ok := body[key]
		if !ok {
			continue
		}
		name, errName := json.Marshal(key)
		text, err := json.Marshal(value)
		if err := errors.Join(errName, err); err != nil {
			return nil, err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", name, text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
