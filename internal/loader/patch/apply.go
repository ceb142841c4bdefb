package patch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"go.yaml.in/yaml/v3"
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
	dest, source := kyaml.NewRNode(nodeOf(object)), kyaml.NewRNode(nodeOf(patch))
	result, err := merge2.Merge(source, dest, kyaml.MergeOptions{ListIncreaseDirection: kyaml.MergeOptionsListPrepend})
	if err != nil {
		return nil, &Problem{Part: "patch", Details: "the patch does not fit the object: a value of it has another type than the field, or a directive is unknown"}
	}
	if result == nil || kyaml.IsMissingOrNull(result) {
		return nil, nil
	}

	out, ok := valueOf(result.YNode()).(map[string]any)
	if !ok {
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

// nodeOf converts JSON values to the nodes that kustomize merges. Texts are quoted, so that they
// cannot be read as another type.
func nodeOf(v any) *yaml.Node {
	n := &yaml.Node{}
	switch v := v.(type) {
	case map[string]any:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.Content = append(n.Content, nodeOf(key), nodeOf(v[key]))
		}
	case []any:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		for _, item := range v {
			n.Content = append(n.Content, nodeOf(item))
		}
	case string:
		n.Kind, n.Tag, n.Value, n.Style = yaml.ScalarNode, "!!str", v, yaml.DoubleQuotedStyle
	case float64:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!float", strconv.FormatFloat(v, 'g', -1, 64)
	case int64:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!int", strconv.FormatInt(v, 10)
	case bool:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!bool", strconv.FormatBool(v)
	default:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!null", "null"
	}

	return n
}

// valueOf converts merged nodes back to JSON values, with integers as int64.
func valueOf(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = valueOf(n.Content[i+1])
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, item := range n.Content {
			out[i] = valueOf(item)
		}
		return out
	}

	var v any
	if n.Tag == "!!str" {
		return n.Value
	} else if err := n.Decode(&v); err != nil {
		return nil
	}

	if i, ok := v.(int); ok {
		return int64(i)
	}

	return v
}
