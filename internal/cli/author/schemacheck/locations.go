package schemacheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// LocationOptions say where relative locations are, and what may be read.
type LocationOptions struct {
	// Folder of the package: file locations are below it.
	Folder string
	// KubernetesVersion for locations that name it.
	KubernetesVersion string
	// Download allows http and https locations.
	Download bool
}

// locations are JSON Schemas at places that follow from an object's kind, as
// kubeconform has them.
type locations struct {
	patterns []string
	version  string
	store    *store
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

// NewLocations returns the schemas at some locations, which are searched in
// their order: paths of files below the package's folder, or URLs, with
// variables such as {{ .ResourceKind }}. "default" stands for the schemas of
// Kubernetes, which are known anyway.
func NewLocations(patterns []string, opts LocationOptions) (Locations, error) {
	l := &locations{version: opts.KubernetesVersion, store: &store{options: opts}, compiled: map[string]*jsonschema.Schema{}}
	for _, pattern := range patterns {
		if pattern == "default" {
			continue
		}
		// A location that names no file has the layout of the public repository of
		// the schemas of Kubernetes.
		if !strings.HasSuffix(pattern, "json") {
			pattern += "/{{ .NormalizedKubernetesVersion }}-standalone{{ .StrictSuffix }}/{{ .ResourceKind }}{{ .KindSuffix }}.json"
		}
		if _, err := expand(pattern, schema.GroupVersionKind{}, ""); err != nil {
			return nil, err
		}
		l.patterns = append(l.patterns, pattern)
	}
	l.compiler = jsonschema.NewCompiler()
	l.compiler.UseLoader(l.store)
	return l, nil
}

// Check implements Locations.
func (l *locations) Check(ctx context.Context, obj *unstructured.Unstructured) (findings []Finding, found bool, err error) {
	for _, pattern := range l.patterns {
		location, err := expand(pattern, obj.GroupVersionKind(), l.version)
		if err != nil {
			return nil, false, err
		}
		url := toURL(location)
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		compiled, err := l.compile(url)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false, fmt.Errorf("the schema of %s at %s: %w", obj.GroupVersionKind(), location, err)
		}
		var invalid *jsonschema.ValidationError
		if err := compiled.Validate(obj.Object); errors.As(err, &invalid) {
			return sorted(leaves(invalid)), true, nil
		} else if err != nil {
			return nil, false, fmt.Errorf("check against the schema at %s: %w", location, err)
		}
		return nil, true, nil
	}
	return nil, false, nil
}

func (l *locations) compile(url string) (*jsonschema.Schema, error) {
	if known := l.compiled[url]; known != nil {
		return known, nil
	}
	if _, err := l.store.Load(url); err != nil {
		return nil, err
	}
	compiled, err := l.compiler.Compile(url)
	if err != nil {
		return nil, err
	}
	l.compiled[url] = compiled
	return compiled, nil
}

// variable of a location.
var variable = regexp.MustCompile(`{{-?\s*\.?([^}]*?)\s*-?}}`)

// expand replaces the variables of a location. There is no template engine: only
// names can stand between the braces.
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
		value, known := values[name]
		if !known {
			unknown = name
		}
		return value
	})
	if unknown != "" {
		return "", fmt.Errorf("test.kubeconform.schemaLocations: %q has no variable %q: there are .ResourceKind, .ResourceAPIVersion, .Group, .KindSuffix, .NormalizedKubernetesVersion and .StrictSuffix", pattern, unknown)
	}
	return out, nil
}

var printer = message.NewPrinter(language.English)

// sorted has findings in the order of their fields: the validator goes through maps.
func sorted(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Problem, b.Problem))
	})
	return findings
}

// leaves are the causes at the ends of a validation error.
func leaves(e *jsonschema.ValidationError) []Finding {
	if len(e.Causes) == 0 {
		return []Finding{{Field: strings.Join(e.InstanceLocation, "."), Problem: e.ErrorKind.LocalizedString(printer)}}
	}
	var findings []Finding
	for _, cause := range e.Causes {
		findings = append(findings, leaves(cause)...)
	}
	return findings
}
