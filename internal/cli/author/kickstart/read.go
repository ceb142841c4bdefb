package kickstart

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Input is one file of objects; messages use its name.
type Input = content.Input

// read reads all objects; notes name skipped documents. The error is of type
// violation.Violations.
func read(inputs []Input) (all []*object, notes []string, err error) {
	r := reader{inputs: inputs, seen: map[string]*object{}}
	for _, in := range inputs {
		problems := document.Each(in.Name, in.Data, func(d *document.Document) {
			r.value(violation.Violation{Reason: violation.ReasonObjectInvalid, Path: d.Path, Document: d.Index, Line: d.Line("")}, d.Value, 0)
		})
		for _, p := range problems {
			if strings.Contains(string(in.Data), "{{") && p.Reason == violation.ReasonInvalidYAML {
				p.Remedy = "This looks like a template: render it first, for example with helm template NAME CHART | kubectl package kickstart NAME -f -"
			}
			r.problems = append(r.problems, p)
		}

		if len(r.objects) > limits.PackageObjects {
			return nil, nil, violation.Violations{{Reason: violation.ReasonLimit, Path: in.Name, Details: fmt.Sprintf("more than %d objects", limits.PackageObjects), Remedy: "Split the package."}}
		}
	}

	if len(r.objects) == 0 && len(r.problems) == 0 {
		r.problems = violation.Violations{{Reason: violation.ReasonNoFiles, Details: "the input has no objects", Remedy: "Pass files with Kubernetes objects with -f."}}
	}
	return r.objects, r.notes, r.problems.Err()
}

// reader collects the objects of all inputs.
type reader struct {
	inputs   []Input
	notes    []string
	objects  []*object
	seen     map[string]*object
	problems violation.Violations
}

// fail records a problem. The limit keeps a hostile input from filling memory with problems.
func (r *reader) fail(at violation.Violation, remedy, format string, args ...any) {
	if len(r.problems) <= limits.Violations {
		r.problems = append(r.problems, at.Because(remedy, format, args...))
	}
}

// value reads one object, or the items of a list.
func (r *reader) value(at violation.Violation, v any, depth int) {
	m, ok := v.(map[string]any)
	if !ok {
		r.fail(at, "", "the document is not an object")
		return
	}
	apiVersion, kind := fields.Text(m, "apiVersion"), fields.Text(m, "kind")
	gv, err := schema.ParseGroupVersion(apiVersion)
	items, isList := m["items"].([]any)
	isList = isList && strings.HasSuffix(kind, "List")
	switch {
	case kustomizes(at.Path, gv.Group, kind):
		r.kustomization(at, m)
	case apiVersion == "" || kind == "" || err != nil:
		r.fail(at, "Leave the file out, or set both.", "apiVersion %q and kind %q are not a valid kind", apiVersion, kind)
	case isList && depth > 0:
		// The depth of the recursion must not grow with the input.
		r.fail(at, "", "a list within a list")
	case isList:
		for _, item := range items {
			r.value(at, item, depth+1)
		}
	default:
		r.object(&object{gvk: gv.WithKind(kind), value: m, at: at})
	}
}

// object adds an object, unless it has no name or is a duplicate.
func (r *reader) object(o *object) {
	at := o.at
	at.Object = fields.Text(o.value, "apiVersion") + " " + o.gvk.Kind
	if o.name() == "" {
		r.fail(at, "Give it a metadata.name: a name that the API server generates cannot be found again.", "the object has no name")
		return
	}
	// The namespace is part of the identity, so an empty one is removed before.
	o.clean()
	key := o.identity()
	if other := r.seen[key]; other != nil {
		r.fail(at, "Remove one of them.", "%s is also in %s (document %d)", o, other.at.Path, other.at.Document)
		return
	}

	r.seen[key] = o
	r.objects = append(r.objects, o)
}

// kustomizes reports whether a document is a kustomization, judged by its kind, or by the name of
// its file if it has no kind.
func kustomizes(file, group, kind string) bool {
	return group == "kustomize.config.k8s.io" || kind == "" && slices.Contains([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, path.Base(filepath.ToSlash(file)))
}

// kustomization skips a kustomization that only lists files of the input. Others have to be built.
func (r *reader) kustomization(at violation.Violation, m map[string]any) {
	changes := slices.ContainsFunc(fields.Keys(m), func(key string) bool {
		return !slices.Contains([]string{"apiVersion", "kind", "metadata", "resources"}, key)
	})
	resources := fields.List(m, "resources")
	folder := path.Dir(filepath.ToSlash(at.Path))
	elsewhere := slices.ContainsFunc(resources, func(item any) bool {
		name, _ := item.(string)
		return name == "" || !r.has(path.Join(folder, name))
	})
	if changes || elsewhere || len(resources) == 0 {
		r.fail(at, "Build it first: kustomize build FOLDER | kubectl package kickstart NAME -f -", "a kustomization is not an object of a cluster")
		return
	}

	r.notes = append(r.notes, fmt.Sprintf("%s was left out: it only lists files of the input", at.Path))
}

// has reports whether a file or folder is in the input.
func (r *reader) has(name string) bool {
	return slices.ContainsFunc(r.inputs, func(in Input) bool {
		file := filepath.ToSlash(in.Name)
		return file == name || strings.HasPrefix(file, name+"/")
	})
}
