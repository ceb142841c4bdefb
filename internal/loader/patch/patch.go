package patch

import (
	"fmt"
	"strings"
	"sync/atomic"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/util/json"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
)

// Patch is one change of rendered objects.
type Patch struct {
	// Target selects objects. If empty, a merge names its object by apiVersion, kind and
	// metadata.name.
	Target Target
	// Patch is YAML or JSON: a list of operations or a mapping to merge.
	Patch string
	// Source names the patch in messages, such as spec.patches[0].
	Source string
}

// Problem is a patch that cannot be read or applied.
type Problem struct {
	// Source is the source of the patch. Part is its wrong part, such as target.name.
	Source, Part string
	Details      string
	Limit        bool
}

// Error implements error.
func (p *Problem) Error() string { return p.Source + ": " + p.Details }

// Set holds patches that can be applied. It is safe for concurrent use.
type Set struct{ patches []*compiled }

// compiled is one patch. Exactly one of merge and operations is set.
type compiled struct {
	source     string
	matcher    *matcher
	merge      map[string]any
	elements   int
	operations jsonpatch.Patch
	used       atomic.Bool
}

// Compile reads patches. It fills in missing sources.
func Compile(patches []Patch) (*Set, []*Problem) {
	if len(patches) > limits.Patches {
		return nil, []*Problem{{Source: "spec.patches", Details: fmt.Sprintf("%d patches; the limit is %d", len(patches), limits.Patches), Limit: true}}
	}

	set, total, operations := &Set{}, 0, 0
	var problems []*Problem
	for i, p := range patches {
		if p.Source == "" {
			p.Source = fmt.Sprintf("spec.patches[%d]", i)
		}
		if total += len(p.Patch); total > limits.PatchBytes {
			return nil, append(problems, &Problem{
				Source: p.Source, Details: fmt.Sprintf("the patches have more than %d bytes", limits.PatchBytes), Limit: true,
			})
		}
		c, problem := compile(p)
		if problem != nil {
			problem.Source = p.Source
			problems = append(problems, problem)
			continue
		}
		if operations += len(c.operations); operations > limits.PatchOperations {
			return nil, append(problems, &Problem{
				Source: p.Source, Details: fmt.Sprintf("the patches have more than %d operations", limits.PatchOperations), Limit: true,
			})
		}
		set.patches = append(set.patches, c)
	}

	return set, problems
}

// compile reads one patch and its target. Its problem lacks the source.
func compile(p Patch) (*compiled, *Problem) {
	value, problem := read(p.Patch)
	if problem != nil {
		return nil, problem
	}

	c := &compiled{source: p.Source}
	switch value := value.(type) {
	case map[string]any:
		c.merge, c.elements = value, elements(value)
	case []any:
		c.operations, problem = operations(value)
	default:
		problem = &Problem{Part: "patch", Details: "the patch is neither a mapping to merge nor a list of JSON patch operations"}
	}

	if problem == nil {
		c.matcher, problem = compileTarget(p.Target, c.merge)
	}

	return c, problem
}

// read parses the text of a patch, which has to be one document.
func read(text string) (any, *Problem) {
	var values []any
	for _, v := range document.Each("", []byte(text), func(d *document.Document) { values = append(values, d.Value) }) {
		return nil, &Problem{Part: "patch", Details: fmt.Sprintf("line %d of the patch: %s", v.Line, v.Details)}
	}
	if len(values) != 1 {
		return nil, &Problem{Part: "patch", Details: fmt.Sprintf("the patch has %d documents, not 1", len(values))}
	}
	return values[0], nil
}

// operationNames are the operations of RFC 6902.
var operationNames = map[string]bool{"add": true, "remove": true, "replace": true, "move": true, "copy": true, "test": true}

// operations checks and decodes a JSON patch. The library accepts unknown operations until they are
// applied.
func operations(list []any) (jsonpatch.Patch, *Problem) {
	for i, item := range list {
		part := fmt.Sprintf("patch[%d]", i)
		op, ok := item.(map[string]any)
		if !ok {
			return nil, &Problem{Part: part, Details: "an operation has to be a mapping"}
		}
		if name, _ := op["op"].(string); !operationNames[name] {
			return nil, &Problem{Part: part + ".op", Details: "op has to be one of add, remove, replace, move, copy, test"}
		}
		if path, ok := op["path"].(string); !ok || path != "" && !strings.HasPrefix(path, "/") {
			return nil, &Problem{Part: part + ".path", Details: "path has to be a JSON pointer, such as /spec/replicas"}
		}
	}

	data, err := json.Marshal(list)
	if err != nil {
		return nil, &Problem{Part: "patch", Details: "the patch cannot be written as JSON"}
	}

	decoded, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, &Problem{Part: "patch", Details: "the list is not a JSON patch"}
	}

	return decoded, nil
}

// Apply applies all matching patches to an object. It returns the result, or nil if the object was
// deleted, and the sources of the applied patches.
func (s *Set) Apply(object map[string]any) (out map[string]any, applied []string, problem *Problem) {
	if s == nil {
		return object, nil, nil
	}

	for _, p := range s.patches {
		if !p.matcher.matches(object) {
			continue
		}
		p.used.Store(true)
		applied = append(applied, p.source)
		if object, problem = p.apply(object); problem != nil {
			problem.Source = p.source
			return nil, applied, problem
		}
		if object == nil {
			return nil, applied, nil
		}
	}

	return object, applied, nil
}

// Unused returns the sources of patches that have not matched any object so far.
func (s *Set) Unused() []string {
	var out []string
	if s != nil {
		for _, p := range s.patches {
			if !p.used.Load() {
				out = append(out, p.source)
			}
		}
	}
	return out
}

// apply applies one patch, and recovers from panics of libraries.
func (p *compiled) apply(object map[string]any) (out map[string]any, problem *Problem) {
	defer func() {
		if r := recover(); r != nil {
			out, problem = nil, &Problem{Part: "patch", Details: "the patch cannot be applied to the object"}
		}
	}()
	if p.operations != nil {
		return p.operate(object)
	}
	if p.elements > 0 && elements(object) > limits.PatchMergeWork/p.elements {
		return nil, &Problem{Part: "patch", Details: fmt.Sprintf("the lists of the patch have %d elements, and the lists of the object %d; the limit of the product is %d",
			p.elements, elements(object), limits.PatchMergeWork), Limit: true}
	}

	return merge(object, p.merge)
}

// elements counts the elements of all lists in a value, at any depth.
func elements(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for _, item := range v {
			n += elements(item)
		}
	case []any:
		n = len(v)
		for _, item := range v {
			n += elements(item)
		}
	}

	return n
}
