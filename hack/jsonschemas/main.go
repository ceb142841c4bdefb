package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "`folder` to write to")
	flag.Parse()
	if err := run(os.Stdin, *out); err != nil {
		log.Fatalf("Error: %v", err)
	}
}

func run(in io.Reader, out string) error {
	if out == "" {
		return errors.New("--out is missing")
	}

	config, err := configSchemas()
	if err != nil {
		return err
	}

	kinds := 0
	for reader := yaml.NewYAMLOrJSONDecoder(in, 1<<20); ; kinds++ {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := reader.Decode(crd)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the definitions: %w", err)
		}
		for _, version := range crd.Spec.Versions {
			schema, err := convert(crd.Spec.Group+"/"+version.Name, crd.Spec.Names.Kind, version.Schema.OpenAPIV3Schema, config)
			if err != nil {
				return err
			}
			if err := write(filepath.Join(out, crd.Spec.Names.Kind+".json"), schema); err != nil {
				return err
			}
		}
	}

	if kinds == 0 {
		return errors.New("standard input has no definitions")
	}

	return nil
}

func write(path string, schema map[string]any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(schema); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}
