package content

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/violation"
)

// SourceFlags belong to an argument SOURCE, a folder or an image.
type SourceFlags struct {
	Registry RegistryFlags
	Pull     bool
}

// Add adds the flags to a command.
func (s *SourceFlags) Add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.Pull, "pull", false, "read the argument as an image, even if there is a folder of that name")
	s.Registry.Add(cmd)
}

// Read returns the files of a folder or an image.
func (s *SourceFlags) Read(ctx context.Context, source string) (loader.Files, error) {
	if s.Folder(source) != "" {
		return ReadFolder(source)
	}
	files, err := s.Registry.Pull(ctx, source)
	if err != nil && BareName(source) && !s.Pull {
		return nil, fmt.Errorf("there is no folder %s, and as an image: %w", source, err)
	}
	return files, err
}

// Folder returns the source if it is a folder, otherwise "".
func (s *SourceFlags) Folder(source string) string {
	if !s.Pull && IsPath(source) {
		return source
	}
	return ""
}

// ReadFolder returns the files of a folder. Its error suggests the right argument.
func ReadFolder(path string) (loader.Files, error) {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return nil, fmt.Errorf("there is no folder %s", path)
	case err != nil:
		return nil, fmt.Errorf("read the package: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a folder: name the folder with the manifest.yaml", path)
	}

	// A folder without files is not an empty package, but a mistaken path.
	files, err := loader.ReadFolder(path)
	if err == nil && len(files) == 0 {
		return nil, fmt.Errorf("there are no files in %s: name the folder with the manifest.yaml", path)
	}
	return files, err
}

// ReadConfig returns JSON; nil for no path.
func ReadConfig(path string, stdin io.Reader) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	name, data, err := ReadInput(path, stdin)
	if errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "{:\n") { // it might be sensitive, so it is not quoted
		return nil, errors.New("read the configuration: --config takes a file, or - for standard input, instead of the configuration itself")
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return ParseConfig(name, data)
}

// ParseConfig returns the JSON of a configuration in YAML or JSON. Errors call it name.
func ParseConfig(name string, data []byte) ([]byte, error) {
	var docs []any
	problems := document.Each(name, data, func(d *document.Document) { docs = append(docs, d.Value) })
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("the configuration cannot be read: %w", err)
	}

	// An empty file is an empty configuration.
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
		return nil, fmt.Errorf("the configuration in %s is not valid JSON: %w", name, err)
	}

	if len(raw) > limits.ConfigBytes {
		return nil, fmt.Errorf("the configuration in %s has %d bytes; the limit is %d", name, len(raw), limits.ConfigBytes)
	}
	return raw, nil
}

// ReadInput reads a file, or standard input for "-", up to one byte over the limit.
func ReadInput(path string, stdin io.Reader) (name string, data []byte, err error) {
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

// BareName reports whether an argument can name a package as well as a folder.
func BareName(arg string) bool { return len(validation.IsDNS1123Label(arg)) == 0 }

// HasManifest reports whether a folder holds a package.
func HasManifest(folder string) bool {
	for _, file := range []string{"manifest.yaml", "manifest.yml"} {
		if _, err := os.Stat(filepath.Join(folder, file)); err == nil {
			return true
		}
	}
	return false
}

// BaseName returns the last part of an image's path as a Kubernetes name.
func BaseName(ref name.Reference) string {
	path := ref.Context().RepositoryStr()
	return strings.ReplaceAll(path[strings.LastIndex(path, "/")+1:], "_", "-")
}

// ImageReference parses the reference of an image. Errors call it noun.
func ImageReference(noun, text string) (name.Reference, error) {
	ref, err := name.ParseReference(text)
	if err != nil {
		return nil, fmt.Errorf("%s %q is not a valid image reference: write it as host/path:tag or host/path@sha256:…", noun, text)
	}
	return ref, nil
}

// IsPath reports whether an argument is a folder: it exists, or is written as only paths are.
func IsPath(arg string) bool {
	if strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, "~") || strings.HasSuffix(arg, "/") {
		return true
	}
	_, err := os.Stat(arg)
	return err == nil
}

// ManifestOf returns the manifest of a component; nil if it cannot be read, because the manager
// reports that error.
func ManifestOf(files loader.Files, component string) *manifest.Result {
	result, _, _ := ReadManifest(files, component)
	return result
}

// ReadManifest reads the manifest of a component. exists is false if the package does not have the
// component.
func ReadManifest(files loader.Files, component string) (result *manifest.Result, problems violation.Violations, exists bool) {
	parts := loader.Parts(files)
	i := slices.IndexFunc(parts, func(p loader.Part) bool { return p.Component == component })
	if i < 0 {
		return nil, nil, false
	}
	result, problems = manifest.Read(parts[i].Files, component)
	return result, problems, true
}

// CheckScope returns an error that names the right flag if a package does not allow a scope.
func CheckScope(source string, files loader.Files, component string, scope corev1alpha1.Scope) error {
	result := ManifestOf(files, component)
	if result == nil {
		return nil
	}
	namespaced := slices.Contains(result.Manifest.Spec.Scopes, manifestsv1alpha1.PackageManifestScopeNamespaced)
	cluster := slices.Contains(result.Manifest.Spec.Scopes, manifestsv1alpha1.PackageManifestScopeCluster)
	switch {
	case scope == corev1alpha1.ScopeNamespaced && cluster && !namespaced:
		return fmt.Errorf("%s can only be installed as a ClusterPackage: add --cluster", source)
	case scope == corev1alpha1.ScopeCluster && namespaced && !cluster:
		return fmt.Errorf("%s can only be installed as a Package, in a namespace: leave out --cluster", source)
	}

	return nil
}

// ComponentsOf names the components of a package.
func ComponentsOf(files loader.Files) []string {
	var names []string
	for _, part := range loader.Parts(files) {
		if part.Component != "" {
			names = append(names, part.Component)
		}
	}
	return names
}

// WriteFolder creates a folder completely or not at all.
func WriteFolder(folder string, files loader.Files) error {
	// The folder is complete before it gets its name, and the temporary one is removed after an
	// error.
	write := func() error {
		if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
			return err
		}
		dir, err := os.MkdirTemp(filepath.Dir(folder), ".kubectl-package-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := cmp.Or(WriteFiles(dir, files), os.Chmod(dir, 0o755)); err != nil {
			return err
		}

		return os.Rename(dir, folder)
	}
	if err := write(); err != nil {
		return fmt.Errorf("write the package: %w", err)
	}

	return nil
}

// WriteFiles writes files below a folder. Their paths cannot leave it.
func WriteFiles(dir string, files loader.Files) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()

	for _, p := range files.Paths() {
		if err := root.MkdirAll(path.Dir(p), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", p, err)
		}
		if err := root.WriteFile(p, files[p], 0o644); err != nil {
			return fmt.Errorf("write %s: %w", p, err)
		}
	}

	return nil
}

// WriteFile is atomic, and replaces a link.
func WriteFile(path string, data []byte) error {
	err := WriteAtomically(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteAtomically replaces a file by a complete one.
func WriteAtomically(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".kubectl-package-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(write(file), file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
