package objecttemplates

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/probes"
)

// key reads one value of an object. Its error can quote the object.
type key interface {
	read(root map[string]any) (any, error)
}

// jqPrefix marks a key as an expression of jq; any other is a JSONPath.
const jqPrefix = "jq:"

// compileKey compiles a key, which is JSONPath as in Package Operator, or jq with a prefix.
func compileKey(text string) (key, error) {
	if expression, ok := strings.CutPrefix(text, jqPrefix); ok {
		compiled, err := probes.CompileJQ(expression)
		if err != nil {
			return nil, err
		}
		return jqKey{compiled}, nil
	}
	return compilePath(text)
}

// jqKey reads a value by jq, within the limits of probes.
type jqKey struct{ *probes.JQ }

func (k jqKey) read(root map[string]any) (any, error) {
	value, found, err := k.Read(root)
	if err == nil && !found {
		err = errors.New("it yields no value: give it a default, such as // \"\"")
	}
	if err == nil && !finite(value) {
		err = errors.New("it yields a number that JSON does not have")
	}
	return value, err
}

// finite reports whether all numbers of a value are.
func finite(value any) bool {
	switch value := value.(type) {
	case float64:
		return !math.IsNaN(value) && !math.IsInf(value, 0)
	case map[string]any:
		for _, element := range value {
			if !finite(element) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(value, func(element any) bool { return !finite(element) })
	}
	return true
}

// relaxed are the forms of a JSONPath: a.b, .a.b, {a.b} and {.a.b}.
var relaxed = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

// pathKey is a JSONPath of Kubernetes.
type pathKey struct {
	text string
	// many means that the path can select any number of values by its form; the result is a list.
	// Results of .* and .. come in the random order of maps, so they are unordered and get sorted.
	many, unordered bool
}

// compilePath compiles a JSONPath and bounds the values that it can select. Unions within each
// other multiply them.
func compilePath(text string) (k key, err error) {
	defer recovered(&err, "it is not a valid JSONPath")
	if len(text) > limits.ObjectTemplateKeyBytes {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", len(text), limits.ObjectTemplateKeyBytes)
	}

	parts := relaxed.FindStringSubmatch(text)
	if parts == nil {
		return nil, fmt.Errorf("%.100q is not a valid JSONPath: write it like .data.host or {.data.host}", text)
	}

	path := pathKey{text: "{." + parts[1] + parts[2] + "}"}
	parsed, err := jsonpath.Parse("key", path.text)
	if err != nil {
		return nil, fmt.Errorf("%.100q is not a valid JSONPath: %w", text, err)
	}

	w := weight{unions: 1}
	w.list(parsed.Root)
	switch {
	case w.recursions > 1:
		return nil, fmt.Errorf("%.100q has .. more than once", text)
	case w.unions > limits.ObjectTemplateUnions:
		return nil, fmt.Errorf("the unions of %.100q select more than %d values of each: use jq", text, limits.ObjectTemplateUnions)
	}

	path.many, path.unordered = w.many, w.unordered
	return path, nil
}

// weight measures the cost of evaluating a JSONPath.
type weight struct {
	many, unordered    bool
	recursions, unions int
}

// list weighs the nodes of a path.
func (w *weight) list(l *jsonpath.ListNode) {
	if l == nil {
		return
	}
	for _, node := range l.Nodes {
		switch node := node.(type) {
		case *jsonpath.ListNode:
			w.list(node)
		case *jsonpath.WildcardNode:
			w.many, w.unordered = true, true
		case *jsonpath.RecursiveNode:
			w.many, w.unordered = true, true
			w.recursions++
		case *jsonpath.ArrayNode:
			w.many = w.many || !node.Params[1].Derived
		case *jsonpath.UnionNode:
			w.many = true
			w.unions = min(w.unions*len(node.Nodes), limits.ObjectTemplateUnions+1)
			for _, branch := range node.Nodes {
				w.list(branch)
			}
		case *jsonpath.FilterNode:
			many, unordered := w.many, w.unordered
			w.list(node.Left)
			w.list(node.Right)
			w.many, w.unordered = many, unordered // the operands of a filter do not select values
		}
	}
}

// read returns the value. A path that can select several values returns a list, unless a filter
// selects exactly one, like a condition by its type.
func (k pathKey) read(root map[string]any) (value any, err error) {
	defer recovered(&err, "it cannot be evaluated on this object")
	path := jsonpath.New("key")
	if err := path.Parse(k.text); err != nil {
		return nil, err
	}

	results, err := path.FindResults(root)
	if err != nil {
		return nil, err
	}

	var values []any
	size := 0
	for _, group := range results {
		for _, result := range group {
			values = append(values, plain(result))
			if size += sizeOf(values[len(values)-1], limits.ObjectTemplateValues-size); size > limits.ObjectTemplateValues {
				return nil, fmt.Errorf("its values have more than %d bytes: select less", limits.ObjectTemplateValues)
			}
		}
	}

	if k.unordered {
		sortByJSON(values)
	}

	switch {
	case len(values) == 0:
		return nil, errors.New("it does not select a value")
	case len(values) == 1 && !k.many:
		return values[0], nil
	}

	return values, nil
}

// sortByJSON sorts values by their encodings, and encodes each value only once.
func sortByJSON(values []any) {
	type encoded struct {
		text  string
		value any
	}

	all := make([]encoded, len(values))
	for i, value := range values {
		text, _ := json.Marshal(value) // decoded JSON can always be encoded
		all[i] = encoded{string(text), value}
	}

	slices.SortFunc(all, func(a, b encoded) int { return strings.Compare(a.text, b.text) })
	for i := range all {
		values[i] = all[i].value
	}
}

// plain returns the value, or nil for an invalid one.
func plain(v reflect.Value) any {
	if !v.IsValid() || !v.CanInterface() {
		return nil
	}
	return v.Interface()
}

// recovered makes a panic of the JSONPath library an error.
func recovered(err *error, text string) {
	if recover() != nil {
		*err = errors.New(text)
	}
}

// collector puts values of sources together.
type collector struct {
	config map[string]any
	// secrets are texts of Secrets, also decoded.
	secrets []string
	// size of all values, in bytes.
	size int
}

// add reads the values of a source, which is JSON.
func (c *collector) add(ctx context.Context, s *plannedSource, content string) error {
	root := map[string]any{}
	if err := utiljson.Unmarshal([]byte(content), &root); err != nil {
		return fmt.Errorf("%s: %s cannot be read", s.field, s.ref)
	}

	for i := range s.items {
		it := &s.items[i]
		if ctx.Err() != nil {
			return fmt.Errorf("reading the values of the sources takes longer than %v: use simpler keys", limits.ObjectTemplateTime)
		}
		value, err := it.key.read(root)
		switch {
		case err != nil && s.secret():
			return fmt.Errorf("%s.key: it selects no value of %s", it.field, s.ref) // the error may quote it
		case err != nil:
			return fmt.Errorf("%s.key: %s: %.300s", it.field, s.ref, err.Error())
		}
		if c.size += sizeOf(value, limits.ObjectTemplateValues-c.size); c.size > limits.ObjectTemplateValues {
			return fmt.Errorf("%s: the values of all sources have more than %d bytes: select less", it.field, limits.ObjectTemplateValues)
		}
		if s.secret() {
			c.addSecrets(value)
		}
		if err := put(c.config, it.destination, value); err != nil {
			return fmt.Errorf("%s.destination: %w", it.field, err)
		}
	}

	return nil
}

// addSecrets keeps the texts of a value that could be in a name.
func (c *collector) addSecrets(value any) {
	for _, v := range loader.SecretValues(map[string]any{"": value}) {
		if len(v.Value) > limits.ObjectTemplateSecretBytes {
			continue
		}
		c.secrets = append(c.secrets, v.Value)
		if data, err := base64.StdEncoding.DecodeString(v.Value); err == nil {
			c.secrets = append(c.secrets, string(data))
		}
	}
}

// put sets a value at a path. A later value replaces an earlier one.
func put(config map[string]any, path []string, value any) error {
	for i, part := range path[:len(path)-1] {
		child, exists := config[part]
		if !exists {
			child = map[string]any{}
			config[part] = child
		}
		fields, isMap := child.(map[string]any)
		if !isMap {
			return fmt.Errorf(".%s is a value of another item, and has no fields", strings.Join(path[:i+1], "."))
		}
		config = fields
	}

	config[path[len(path)-1]] = copyOf(value)
	return nil
}

// copyOf copies a value, because later items can add to it.
func copyOf(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := make(map[string]any, len(value))
		for key, element := range value {
			fields[key] = copyOf(element)
		}
		return fields
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = copyOf(element)
		}
		return list
	}
	return value
}

// sizeOf returns the size of a value, or more than most.
func sizeOf(value any, most int) int {
	size := 16
	switch value := value.(type) {
	case string:
		size += len(value)
	case map[string]any:
		for key, element := range value {
			if size > most {
				break
			}
			size += 16 + len(key) + sizeOf(element, most-size)
		}
	case []any:
		for _, element := range value {
			if size > most {
				break
			}
			size += sizeOf(element, most-size)
		}
	}

	return size
}
