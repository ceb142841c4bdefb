package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
)

// readConfig returns JSON; nil for no path.
func readConfig(path string, stdin io.Reader) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	name, data, err := readInput(path, stdin)
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
		return []byte("{}"), nil
	case 1:
	default:
		return nil, fmt.Errorf("the configuration in %s has %d documents: put all of it into one", name, len(docs))
	}
	config, ok := docs[0].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the configuration in %s is not a mapping: write it as name: value", name)
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("the configuration in %s is no JSON: %w", name, err)
	}
	if len(raw) > limits.ConfigBytes {
		return nil, fmt.Errorf("the configuration in %s has %d bytes; the limit is %d", name, len(raw), limits.ConfigBytes)
	}
	return raw, nil
}

// readInput reads a file, or standard input for "-", up to one byte over the limit.
func readInput(path string, stdin io.Reader) (name string, data []byte, err error) {
	name, in := path, stdin
	if path == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(path)
		if err != nil {
			return name, nil, err
		}
		defer f.Close()
		in = f
	}
	data, err = io.ReadAll(io.LimitReader(in, limits.DocumentBytes+1))
	return name, data, err
}
