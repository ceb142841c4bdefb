package rendered

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/terminal"
)

// WriteFolder writes each object to a file, in folders named after the phases in their
// order, such as 01-crds. The folder has to be new or empty. It returns the paths.
func WriteFolder(dir string, objects []Object) ([]string, error) {
	if err := emptyFolder(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	defer root.Close()
	var paths []string
	for _, o := range objects {
		p := o.path()
		if err := root.MkdirAll(path.Dir(p), 0o755); err != nil {
			return nil, fmt.Errorf("write %s: %w", filepath.Join(dir, p), err)
		}
		var text bytes.Buffer
		if err := terminal.WriteYAML(&text, o); err != nil {
			return nil, err
		}
		if err := root.WriteFile(p, text.Bytes(), 0o644); err != nil {
			return nil, fmt.Errorf("write %s: %w", filepath.Join(dir, p), err)
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// emptyFolder makes a folder, or rejects one with content.
func emptyFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open the folder: %w", err)
	}
	defer f.Close()
	if _, err := f.Readdirnames(1); err == nil {
		return fmt.Errorf("%s is not empty: name a new folder, or remove what is in it", dir)
	} else if !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the folder: %w", err)
	}
	return nil
}

// path is where the object's file is: 02-deploy/deployment.apps_shop_web.yaml.
func (o Object) path() string {
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
