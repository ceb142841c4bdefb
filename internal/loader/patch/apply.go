package patch

import (
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/util/json"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"

	"lockstep.run/lockstep/internal/limits"
)

// operate applies a JSON patch to an object and keeps its identity. Errors of the library can
// contain values.
func (p *compiled) operate(object map[string]any) (map[string]any, *Problem) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, &Problem{Part: "patch", Details: "the object cannot be written as JSON"}
	}

	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = limits.ObjectBytes
	outcome, err := p.operations.ApplyWithOptions(data, options)
	if err != nil {
		return nil, p.failure(data, options)
	}

	var out map[string]any
	if err := json.Unmarshal(outcome, &out); err != nil || out == nil {
		return nil, &Problem{Part: "patch", Details: "the result is not an object"}
	}

	keepIdentity(out, object)
	return out, nil
}

// failure finds the first operation that fails, by applying them one by one. The library's own
// error quotes values and does not name the operation.
func (p *compiled) failure(data []byte, options *jsonpatch.ApplyOptions) *Problem {
	const most = 100
	var err error
	for i := range p.operations[:min(most, len(p.operations))] {
		if data, err = p.operations[i:i+1].ApplyWithOptions(data, options); err != nil {
			return explain(i, p.operations[i], err)
		}
	}
	return &Problem{Part: "patch", Details: "an operation cannot be applied"}
}

// explain returns the problem of an operation in words of this package.
func explain(i int, op jsonpatch.Operation, err error) *Problem {
	path, _ := op.Path()
	why := "cannot be applied"
	var tooLarge *jsonpatch.AccumulatedCopySizeError
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed):
		why = "the object has another value there"
	case errors.Is(err, jsonpatch.ErrMissing):
		why = "the object has no such path"
	case errors.Is(err, jsonpatch.ErrInvalidIndex):
		why = "the list has no such index"
	case errors.As(err, &tooLarge):
		why = fmt.Sprintf("copies more than %d bytes", limits.ObjectBytes)
	}

	return &Problem{Part: fmt.Sprintf("patch[%d]", i), Details: fmt.Sprintf("%s of %s: %s", op.Kind(), path, why), Limit: tooLarge != nil}
}

// merge merges a patch into an object and keeps its identity. It returns nil if the patch deletes
// the object.
func merge(object, patch map[string]any) (map[string]any, *Problem) {
	dest, err := nodeOf(object)
	if err != nil {
		return nil, &Problem{Part: "patch", Details: "the object cannot be read as YAML"}
	}
	source, err := nodeOf(patch)
	if err != nil {
		return nil, &Problem{Part: "patch", Details: "the patch cannot be read as YAML"}
	}

	result, err := merge2.Merge(source, dest, kyaml.MergeOptions{ListIncreaseDirection: kyaml.MergeOptionsListPrepend})
	if err != nil {
		return nil, &Problem{Part: "patch", Details: "the patch does not fit the object: a value of it has another type than the field, or a directive is unknown"}
	}
	if result == nil || kyaml.IsMissingOrNull(result) {
		return nil, nil
	}

	var out map[string]any
	data, err := result.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil || out == nil {
		return nil, &Problem{Part: "patch", Details: "the result is not an object"}
	}

	keepIdentity(out, object)
	return out, nil
}

// keepIdentity restores apiVersion, kind, name and namespace. Otherwise a patch could move an
// object to another place after the package was checked for it.
func keepIdentity(out, object map[string]any) {
	restore := func(into, from map[string]any, keys ...string) {
		for _, key := range keys {
			if value, ok := from[key]; ok {
				into[key] = value
			} else {
				delete(into, key)
			}
		}
	}

	restore(out, object, "apiVersion", "kind")
	before, _ := object["metadata"].(map[string]any)
	after, ok := out["metadata"].(map[string]any)
	if !ok {
		after = map[string]any{}
		out["metadata"] = after
	}

	restore(after, before, "name", "namespace")
}

// nodeOf returns a value as a node. JSON is YAML, and keeps the types of all scalars.
func nodeOf(v map[string]any) (*kyaml.RNode, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return kyaml.Parse(string(data))
}
