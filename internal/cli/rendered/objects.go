package rendered

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/loader"
)

// Object is one final object of a package.
type Object struct {
	// Phase that it is rolled out in, and the phase's number, from 1.
	Phase  string
	Number int

	Group, Kind, Namespace, Name string

	raw json.RawMessage
}

// MarshalJSON implements json.Marshaler: apiVersion, kind and metadata come
// first, as people write them.
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
	meta, _ := body["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		body["metadata"] = meta
	}
	all, _ := meta["labels"].(map[string]any)
	if all == nil {
		all = map[string]any{}
		meta["labels"] = all
	}
	for key, value := range labels {
		all[key] = value
	}
	o := Object{}
	apiVersion, _ := body["apiVersion"].(string)
	if group, _, grouped := strings.Cut(apiVersion, "/"); grouped {
		o.Group = group
	}
	o.Kind, _ = body["kind"].(string)
	o.Namespace, _ = meta["namespace"].(string)
	o.Name, _ = meta["name"].(string)
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
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
