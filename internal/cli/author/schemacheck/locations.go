package schemacheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
)

// LocationOptions restrict the reads.
type LocationOptions struct {
	// Folder of the package. Locations of files are below it.
	Folder string
	// KubernetesVersion for locations with a variable for it.
	KubernetesVersion string
}

// Locations are JSON Schemas at places that follow from an object's kind, as in kubeconform. A nil
// Locations has none.
type Locations struct {
	patterns []string
	options  LocationOptions
	// compiler keeps each compiled schema.
	compiler *jsonschema.Compiler
}

// NewLocations returns the schemas at some locations, in order. A location is the path of a file
// below the package's folder, with variables such as {{ .ResourceKind }}. The location "default"
// means the bundled schemas of Kubernetes. URLs are skipped, because no command needs a network.
func NewLocations(patterns []string, opts LocationOptions) (*Locations, error) {
	l := &Locations{options: opts, compiler: jsonschema.NewCompiler()}
	l.compiler.UseLoader(l)
	for _, pattern := range patterns {
		if pattern == "default" || strings.HasPrefix(pattern, "http://") || strings.HasPrefix(pattern, "https://") {
			continue
		}

		// A location without a file name has the layout of the public repository of Kubernetes
		// schemas.
		if !strings.HasSuffix(pattern, "json") {
			pattern += "/{{ .NormalizedKubernetesVersion }}-standalone{{ .StrictSuffix }}/{{ .ResourceKind }}{{ .KindSuffix }}.json"
		}
		if _, err := expand(pattern, schema.GroupVersionKind{}, ""); err != nil {
			return nil, err
		}
		l.patterns = append(l.patterns, pattern)
	}

	return l, nil
}

// Check returns the findings about an object. found reports whether there is a schema for it.
func (l *Locations) Check(ctx context.Context, obj *unstructured.Unstructured) (findings []Finding, found bool, err error) {
	if l == nil {
		return nil, false, nil
	}

	for _, pattern := range l.patterns {
		location, err := expand(pattern, obj.GroupVersionKind(), l.options.KubernetesVersion)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, false, err
		}

		// A path cannot lead above the root, which is the package's folder.
		at := (&url.URL{Scheme: folderScheme, Path: path.Clean("/" + location)}).String()
		compiled, err := l.compiler.Compile(at)
		var failed *jsonschema.LoadURLError // does not unwrap
		if errors.As(err, &failed) && failed.URL == at {
			err = failed.Err
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false, fmt.Errorf("the schema of %s at %s: %w", obj.GroupVersionKind(), location, err)
		}

		err = compiled.Validate(obj.Object)
		var invalid *jsonschema.ValidationError
		if err != nil && !errors.As(err, &invalid) {
			return nil, false, fmt.Errorf("check against the schema at %s: %w", location, err)
		}

		return sorted(leaves(invalid)), true, nil
	}

	return nil, false, nil
}

// leaves returns the innermost causes of a validation error.
func leaves(e *jsonschema.ValidationError) (findings []Finding) {
	if e == nil {
		return nil
	}
	if len(e.Causes) == 0 {
		return []Finding{{Field: strings.Join(e.InstanceLocation, "."), Problem: e.ErrorKind.LocalizedString(message.NewPrinter(language.English))}}
	}
	for _, cause := range e.Causes {
		findings = append(findings, leaves(cause)...)
	}
	return findings
}

// variable matches a variable of a location, in the syntax of Go templates.
var variable = regexp.MustCompile(`{{-?\s*\.?([^}]*?)\s*-?}}`)

// expand replaces the variables of a location.
func expand(pattern string, gvk schema.GroupVersionKind, version string) (string, error) {
	groupOrVersion := gvk.Group
	suffix := "-" + strings.ToLower(strings.SplitN(gvk.Group, ".", 2)[0]) + "-" + strings.ToLower(gvk.Version)
	if gvk.Group == "" {
		groupOrVersion, suffix = gvk.Version, "-"+strings.ToLower(gvk.Version)
	}
	if version != "" && version != "master" && !strings.HasPrefix(version, "v") {
		version = "v" + version
	}

	values := map[string]string{
		"NormalizedKubernetesVersion": version, "StrictSuffix": "-strict", "ResourceKind": strings.ToLower(gvk.Kind),
		"ResourceAPIVersion": gvk.Version, "Group": groupOrVersion, "KindSuffix": suffix,
	}

	var unknown string
	out := variable.ReplaceAllStringFunc(pattern, func(found string) string {
		name := variable.FindStringSubmatch(found)[1]
		if _, known := values[name]; !known {
			unknown = name
		}
		return values[name]
	})

	if unknown != "" {
		return "", fmt.Errorf("test.kubeconform.schemaLocations: %q has no variable %q: there are .ResourceKind, .ResourceAPIVersion, .Group, .KindSuffix, .NormalizedKubernetesVersion and .StrictSuffix", pattern, unknown)
	}
	return out, nil
}

// folderScheme is the scheme of URLs for files below the package's folder.
const folderScheme = "package"

// Load implements jsonschema.URLLoader.
func (l *Locations) Load(location string) (any, error) {
	parsed, err := url.Parse(location)
	if err != nil {
		return nil, err
	}
	if parsed.Scheme != folderScheme {
		return nil, fmt.Errorf("%s is not a file of the package", location)
	}
	body, err := l.open(parsed.Path)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, limits.SchemaFileBytes+1))
	if err != nil {
		return nil, err
	}

	if len(text) > limits.SchemaFileBytes {
		return nil, fmt.Errorf("more than %d bytes, which is the limit", limits.SchemaFileBytes)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return nil, errors.New("it is not valid JSON") // without quoting it
	}

	return value, nil
}

// open opens a file below the package's folder. Symbolic links cannot lead out of it.
func (l *Locations) open(p string) (io.ReadCloser, error) {
	f, err := os.OpenInRoot(l.options.Folder, strings.TrimPrefix(p, "/"))
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is not a file", p)
	}
	return f, nil
}
