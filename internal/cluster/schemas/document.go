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

	"lockstep.run/lockstep/internal/limits"
)

// document holds the definitions of one group version.
type document struct {
	// used is the time of its last use, and counted the number of its bytes that are counted until
	// it is dropped; guarded by the Checker.
	used    time.Time
	counted int64
	dropped bool

	mu sync.Mutex
	// loading is closed when the caller that reads the document has ended; nil if no caller reads
	// it.
	loading chan struct{}
	// content is nil until the document is loaded, and never changes after that.
	content *content
	// converters by kind; nil for a kind without a usable schema.
	converters map[schema.GroupVersionKind]managedfields.TypeConverter
	// decoded is the number of bytes of the definitions that the converters were made of.
	decoded int64
}

// content of a document.
type content struct {
	// definitions by name, as JSON.
	definitions map[string]json.RawMessage
	// names of the definitions of kinds.
	names map[schema.GroupVersionKind]string
	// bytes of the definitions.
	bytes int64
}

// load reads the document unless it is there. Concurrent callers wait for the first, each no longer
// than its own context. If the first fails, the next one tries.
func (d *document) load(ctx context.Context, from openapi.GroupVersionWithContext) error {
	for {
		d.mu.Lock()
		loaded, others := d.content != nil, d.loading
		mine := !loaded && others == nil
		if mine {
			d.loading = make(chan struct{})
		}
		d.mu.Unlock()
		switch {
		case loaded:
			return nil
		case mine:
			return d.read(ctx, from)
		}
		select {
		case <-others:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", pathOf(from), context.Cause(ctx))
		}
	}
}

// read reads the document for all who wait for it.
func (d *document) read(ctx context.Context, from openapi.GroupVersionWithContext) error {
	defer func() { // also if it panics
		d.mu.Lock()
		defer d.mu.Unlock()
		close(d.loading)
		d.loading = nil
	}()
	text, err := fetch(ctx, from)
	if err != nil {
		return fmt.Errorf("read %s: %w", pathOf(from), err)
	}

	definitions, err := definitionsOf(text)
	if err != nil {
		return fmt.Errorf("read %s: %w", pathOf(from), err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fill(definitions)

	return nil
}

func definitionsOf(text []byte) (map[string]json.RawMessage, error) {
	if n := bytes.Count(text, []byte("{")); n > limits.SchemaDocumentObjects {
		return nil, fmt.Errorf("it has %d JSON objects; the limit is %d", n, limits.SchemaDocumentObjects)
	}
	var document struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("decode it: %w", err)
	}
	return document.Components.Schemas, nil
}

// fill sets the content.
func (d *document) fill(definitions map[string]json.RawMessage) {
	d.content = &content{definitions: definitions, names: kindsOf(definitions), bytes: sizeOf(definitions)}
	d.converters = map[schema.GroupVersionKind]managedfields.TypeConverter{}
}

const kindExtension = "x-kubernetes-group-version-kind"

// kindsOf finds the definitions of kinds. If two are of the same kind, the first name wins.
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

// converter returns the converter of a kind to typed values; nil if the document does not describe
// it or is malformed.
func (d *document) converter(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	d.mu.Lock()
	defer d.mu.Unlock()
	if converter, made := d.converters[gvk]; made {
		return converter
	}

	name, described := d.content.names[gvk]
	if !described {
		return nil
	}

	// If it fails, only the API server checks.
	definitions := closure(d.content.definitions, name)
	converter := makeConverter(definitions)
	if d.converters[gvk] = converter; converter != nil {
		d.decoded += sizeOf(definitions)
	}

	return converter
}

// bytes is the approximate memory: the text of the definitions, and the decoded ones a second time.
func (d *document) bytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.content == nil {
		return 0
	}
	return d.content.bytes + d.decoded
}

func sizeOf(definitions map[string]json.RawMessage) (bytes int64) {
	for name, definition := range definitions {
		bytes += int64(len(name) + len(definition))
	}
	return bytes
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

// makeConverter returns nil if definitions exceed a limit or are malformed.
func makeConverter(definitions map[string]json.RawMessage) managedfields.TypeConverter {
	objects := 0
	for _, definition := range definitions {
		// Each level of nesting is read again for each enclosing one.
		if objects += bytes.Count(definition, []byte("{")); objects > limits.SchemaObjects || isDeep(definition) {
			return nil
		}
	}

	schemas := make(map[string]*spec.Schema, len(definitions))
	for name, definition := range definitions {
		schemas[name] = new(spec.Schema)
		if json.Unmarshal(definition, schemas[name]) != nil {
			return nil
		}
	}

	converter, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		return nil
	}
	return converter
}

// isDeep reports whether JSON is nested deeper than limits.SchemaNesting.
func isDeep(raw json.RawMessage) bool {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > limits.SchemaNesting {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}

	return false
}
