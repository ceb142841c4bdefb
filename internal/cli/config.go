package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
)

// readConfig reads the configuration of a package from a YAML or JSON file, or
// from standard input where the path is "-".
func readConfig(path string, stdin io.Reader) (map[string]any, error) {
	name, in := path, stdin
	if path == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, limits.DocumentBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	var docs []any
	problems := document.Each(name, data, func(d *document.Document) { docs = append(docs, d.Value) })
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	switch len(docs) {
	case 0:
		return map[string]any{}, nil
	case 1:
	default:
		return nil, fmt.Errorf("the configuration in %s has %d documents: put all of it into one", name, len(docs))
	}
	config, ok := docs[0].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the configuration in %s is not a mapping: write it as name: value", name)
	}
	if raw, err := json.Marshal(config); err != nil {
		return nil, fmt.Errorf("the configuration in %s is no JSON: %w", name, err)
	} else if len(raw) > limits.ConfigBytes {
		return nil, fmt.Errorf("the configuration in %s has %d bytes; the limit is %d", name, len(raw), limits.ConfigBytes)
	}
	return config, nil
}
