package author

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
)

// renderedObject is one final object of a package.
type renderedObject struct {
	// Phase of the rollout, and its number from 1.
	Phase  string
	Number int

	Group, Kind, Namespace, Name string

	raw json.RawMessage
}

// MarshalJSON implements json.Marshaler, with apiVersion, kind and metadata first.
func (o renderedObject) MarshalJSON() ([]byte, error) { return o.raw, nil }

// renderedObjects returns the objects of a package in the order of their rollout.
func renderedObjects(pkg *loader.Package) ([]renderedObject, error) {
	var out []renderedObject
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
func finish(raw []byte, labels map[string]string) (renderedObject, error) {
	var body map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&body); err != nil {
		return renderedObject{}, fmt.Errorf("an object cannot be read: %w", err)
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
	o := renderedObject{Group: u.GroupVersionKind().Group, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	var err error
	o.raw, err = ordered(body)
	return o, err
}

// ordered encodes an object with what identifies it first.
func ordered(body map[string]any) (json.RawMessage, error) {
	rest := maps.Clone(body)
	head := struct {
		APIVersion any `json:"apiVersion,omitempty"`
		Kind       any `json:"kind,omitempty"`
		Metadata   any `json:"metadata,omitempty"`
	}{body["apiVersion"], body["kind"], body["metadata"]}
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(rest, key)
	}
	first, errHead := json.Marshal(head)
	last, err := json.Marshal(rest)
	if err := errors.Join(errHead, err); err != nil || len(rest) == 0 {
		return first, err
	}
	return slices.Concat(first[:len(first)-1], []byte(","), last[1:]), nil
}

// writeObjects writes each object to a file, in folders named after the phases in their
// order, such as 01-crds. The folder has to be new or empty. It returns the paths.
func writeObjects(dir string, objects []renderedObject) ([]string, error) {
	if err := emptyFolder(dir); err != nil {
		return nil, err
	}
	files := loader.Files{}
	var paths []string
	for _, o := range objects {
		var text bytes.Buffer
		if err := terminal.WriteYAML(&text, o); err != nil {
			return nil, err
		}
		files[o.path()], paths = text.Bytes(), append(paths, o.path())
	}
	return paths, content.WriteFiles(dir, files)
}

// emptyFolder makes a folder, or rejects one with content.
func emptyFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the folder: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty: name a new folder, or remove what is in it", dir)
	}
	return nil
}

// path is where the object's file is: 02-deploy/deployment.apps_shop_web.yaml.
func (o renderedObject) path() string {
	kind := schema.GroupKind{Group: o.Group, Kind: strings.ToLower(o.Kind)}
	file := kind.String() + "_" + strings.TrimPrefix(o.Namespace+"_"+o.Name, "_")
	return fmt.Sprintf("%02d-%s/%s.yaml", o.Number, fileName(o.Phase), fileName(file))
}

// fileName is a name that every file system accepts. Names that differ stay different: %
// is escaped, too.
func fileName(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	if b.Len() > maxName {
		return fmt.Sprintf("%s-%x", b.String()[:maxName], sha256.Sum256([]byte(name)))[:maxName+17]
	}
	return b.String()
}

// maxName leaves room for a number, a digest and the ending within the 255 bytes
// that file systems allow.
const maxName = 220

// printObjects writes YAML documents, each phase with its name above it.
func printObjects(w io.Writer, objects []renderedObject) error {
	for i, o := range objects {
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		if i == 0 || objects[i-1].Number != o.Number {
			fmt.Fprintf(w, "# Phase %s\n", terminal.Line(o.Phase))
		}
		if err := terminal.WriteYAML(w, o); err != nil {
			return err
		}
	}
	return nil
}
