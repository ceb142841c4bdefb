package bundled

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the schemas
	"encoding/json"
	"fmt"
	"sync"
)

//go:embed kubernetes.json.gz
var packed []byte

// Schemas are the definitions of one version of Kubernetes.
type Schemas struct {
	// Version of Kubernetes, such as v1.37.0.
	Version string `json:"version"`
	// Definitions by name, as in components.schemas of an OpenAPI v3 document.
	Definitions map[string]json.RawMessage `json:"schemas"`
}

// Kubernetes returns the definitions. Callers must not change them.
var Kubernetes = sync.OnceValues(func() (*Schemas, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the schemas of Kubernetes: %w", err)
	}
	var s Schemas
	if err := json.NewDecoder(z).Decode(&s); err != nil {
		return nil, fmt.Errorf("read the schemas of Kubernetes: %w", err)
	}
	return &s, nil
})
