package schemas

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// document holds the definitions of one group version.
type document struct {
	// used is when it was last asked for; guarded by the Checker.
	used time.Time

	mu sync.Mutex
	// definitions by name, as JSON; nil until the document is loaded.
	definitions map[string]json.RawMessage
	// names of the definitions of kinds.
	names map[schema.GroupVersionKind]string
	// converters by kind; nil for one that cannot be made.
	converters map[schema.GroupVersionKind]managedfields.TypeConverter
}

// load reads the document unless it is there. Concurrent callers wait for the first; where
// that fails, the next one tries.
func (d *document) load(ctx context.Context, from openapi.GroupVersionWithContext) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.definitions != nil {
		return nil
	}
	text, err := fetch(ctx, from)
	if err != nil {
		return err
	}
	var content struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &content); err != nil {
		return fmt.Errorf("decode %s: %w", from.ServerRelativeURL(), err)
	}
	d.fill(content.Components.Schemas)
	return nil
}

func (d *document) fill(definitions map[string]json.RawMessage) {
	d.names = kindsOf(definitions)
	d.converters = map[schema.GroupVersionKind]managedfields.TypeConverter{}
	d.definitions = definitions
	if d.definitions == nil {
		d.definitions = map[string]json.RawMessage{}
	}
}

const kindExtension = "x-kubernetes-group-version-kind"

// kindsOf finds the definitions of kinds. Of two for the same kind, the first name counts.
func kindsOf(definitions map[string]json.RawMessage) map[schema.GroupVersionKind]string {
	names := map[schema.GroupVersionKind]string{}
	for name, definition := range definitions {
		if !bytes.Contains(definition, []byte(kindExtension)) {
			continue
		}
		var extension struct {
			Kinds []struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
		}
		if json.Unmarshal(definition, &extension) != nil {
			continue
		}
		for _, kind := range extension.Kinds {
			gvk := schema.GroupVersionKind(kind)
			if known, twice := names[gvk]; !twice || name < known {
				names[gvk] = name
			}
		}
	}
	return names
}

// converter returns the converter of a kind to typed values; nil where the document does
// not describe it, or is malformed.
func (d *document) converter(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	d.mu.Lock()
	defer d.mu.Unlock()
	if converter, made := d.converters[gvk]; made {
		return converter
	}
	name, described := d.names[gvk]
	if !described {
		return nil
	}
	// Where it fails, the API server checks alone.
	converter, _ := makeConverter(closure(d.definitions, name))
	d.converters[gvk] = converter
	return converter
}

const reference = `"#/components/schemas/`

// closure returns the definitions that one refers to, itself included.
func closure(definitions map[string]json.RawMessage, name string) map[string]json.RawMessage {
	found := map[string]json.RawMessage{}
	for open := []string{name}; len(open) > 0; {
		name, open = open[len(open)-1], open[:len(open)-1]
		definition, exists := definitions[name]
		if _, done := found[name]; done || !exists {
			continue
		}
		found[name] = definition
		for rest := definition; ; {
			_, after, isReference := bytes.Cut(rest, []byte(reference))
			target, after, isComplete := bytes.Cut(after, []byte(`"`))
			if !isReference || !isComplete {
				break
			}
			open, rest = append(open, string(target)), after
		}
	}
	return found
}

func makeConverter(definitions map[string]json.RawMessage) (managedfields.TypeConverter, error) {
	schemas := make(map[string]*spec.Schema, len(definitions))
	for name, definition := range definitions {
		decoded := new(spec.Schema)
		if err := json.Unmarshal(definition, decoded); err != nil {
			return nil, fmt.Errorf("decode %s: %w", name, err)
		}
		schemas[name] = decoded
	}
	return managedfields.NewTypeConverter(schemas, false)
}
