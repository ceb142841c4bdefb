package patch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"

	"lockstep.run/lockstep/internal/limits"
)

// operate applies a JSON patch. Errors of the library may contain values.
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
		return nil, &Problem{Part: "patch", Details: "the outcome is no object"}
	}
	return out, nil
}

// failure finds the operation that fails.
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

// merge merges a patch into an object and keeps its identity. The result is nil if the
// patch deletes the object.
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
		return nil, &Problem{Part: "patch", Details: "the outcome is no object"}
	}
	keepIdentity(out, object)
	return out, nil
}

// keepIdentity writes apiVersion, kind, name and namespace of the original.
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

// nodeOf makes YAML nodes of the values of JSON.
func nodeOf(v any) *yaml.Node {
	scalar := func(tag, text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text} }
	switch v := v.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			n.Content = append(n.Content, scalar("!!str", key), nodeOf(v[key]))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v {
			n.Content = append(n.Content, nodeOf(item))
		}
		return n
	case string:
		n := scalar("!!str", v)
		n.Style = yaml.DoubleQuotedStyle
		return n
	case int64:
		return scalar("!!int", strconv.FormatInt(v, 10))
	case float64:
		return scalar("!!float", strconv.FormatFloat(v, 'g', -1, 64))
	case bool:
		return scalar("!!bool", strconv.FormatBool(v))
	default:
		return scalar("!!null", "null")
	}
}

// valueOf is the reverse of nodeOf.
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
	switch n.Tag {
	case "!!str":
		return n.Value
	case "!!int":
		if v, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			return v
		}
	case "!!float":
		if v, err := strconv.ParseFloat(n.Value, 64); err == nil {
			return v
		}
	case "!!bool":
		return n.Value == "true"
	}
	return nil
}
