package sources

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// config returns the merged configuration, and the values from Secrets that are not sensitive by
// default.
func (r *reader) config(ctx context.Context, spec *corev1alpha1.PackageSpec) ([]byte, []loader.SecretValue, error) {
	var own []byte
	if spec.Config != nil {
		own = spec.Config.Raw
	}
	if len(spec.ConfigFrom) == 0 {
		return own, nil, nil
	}

	merged, ordinary := map[string]any{}, map[string]any{}
	lay := func(values map[string]any, secret bool) {
		merged, ordinary = merge(merged, values), without(ordinary, values)
		if secret {
			ordinary = merge(ordinary, values)
		}
	}

	for i := range spec.ConfigFrom {
		source, field := &spec.ConfigFrom[i], fmt.Sprintf("spec.configFrom[%d]", i)
		text, ok, err := r.text(ctx, field, source)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		values, ok := r.object(field, source, text)
		if !ok {
			continue
		}
		if sensitive(source) {
			r.keep(values)
		}
		lay(values, source.SecretKeyRef != nil && !sensitive(source))
	}

	if len(own) > 0 {
		values := map[string]any{}
		if err := json.Unmarshal(own, &values); err != nil {
			return nil, nil, violation.Violations{{Reason: violation.ReasonConfigInvalid, Field: "spec.config", Details: "has to be an object"}}
		}
		lay(values, false)
	}

	raw, err := json.Marshal(merged)
	return raw, loader.SecretValues(ordinary), err
}

func (r *reader) object(field string, source *corev1alpha1.ValueSource, text []byte) (map[string]any, bool) {
	document, problem := only(text)
	if problem == "" && document == nil {
		return map[string]any{}, true
	}
	values, ok := document.(map[string]any)
	if problem == "" && !ok {
		problem = "it has to be an object: keys and values in YAML or JSON"
	}
	if problem != "" {
		r.invalid(field, source, problem)
	}
	return values, problem == ""
}

// only parses text that must be a single document in YAML or JSON. The problem does not quote the
// text.
func only(text []byte) (value any, problem string) {
	if len(text) > limits.ConfigBytes {
		return nil, fmt.Sprintf("it has %d bytes; the limit is %d", len(text), limits.ConfigBytes)
	}

	documents := 0
	wrong := document.Each("", text, func(d *document.Document) {
		documents++
		value = d.Value
	})

	switch {
	case len(wrong) > 0 && wrong[0].Line > 0:
		return nil, fmt.Sprintf("line %d is not valid YAML or JSON", wrong[0].Line)
	case len(wrong) > 0:
		return nil, "it is not valid YAML or JSON"
	case documents > 1:
		return nil, fmt.Sprintf("it has %d YAML documents; exactly one is allowed", documents)
	}

	return value, ""
}

// merge merges over into base: objects key by key, all other values as a whole.
func merge(base, over map[string]any) map[string]any {
	merged := maps.Clone(base)
	for key, value := range over {
		lower, isObject := merged[key].(map[string]any)
		upper, also := value.(map[string]any)
		if isObject && also {
			merged[key] = merge(lower, upper)
			continue
		}
		merged[key] = value
	}
	return merged
}

// without returns base without the values that over replaces.
func without(base, over map[string]any) map[string]any {
	rest := maps.Clone(base)
	for key, value := range over {
		lower, isObject := rest[key].(map[string]any)
		upper, also := value.(map[string]any)
		if isObject && also {
			rest[key] = without(lower, upper)
			continue
		}
		delete(rest, key)
	}
	return rest
}

func (r *reader) patches(ctx context.Context, spec *corev1alpha1.PackageSpec) ([]string, error) {
	texts := make([]string, len(spec.Patches))
	for i := range spec.Patches {
		texts[i] = spec.Patches[i].Patch
		source, field := spec.Patches[i].PatchFrom, fmt.Sprintf("spec.patches[%d].patchFrom", i)
		if source == nil {
			continue
		}
		text, ok, err := r.text(ctx, field, source)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		texts[i] = string(text)
		if !sensitive(source) {
			continue
		}
		patch, problem := only(text)
		if problem != "" {
			r.invalid(field, source, problem)
			continue
		}
		r.keep(valuesOf(patch))
	}

	return texts, nil
}

// valuesOf returns the values of a patch. It skips the paths of a JSON patch and the identity of
// the object in a merge patch.
func valuesOf(patch any) any {
	switch p := patch.(type) {
	case []any:
		values := make([]any, 0, len(p))
		for _, item := range p {
			if operation, ok := item.(map[string]any); ok {
				values = append(values, operation["value"])
			}
		}
		return values
	case map[string]any:
		rest := maps.Clone(p)
		delete(rest, "apiVersion")
		delete(rest, "kind")
		if metadata, ok := rest["metadata"].(map[string]any); ok {
			metadata = maps.Clone(metadata)
			delete(metadata, "name")
			delete(metadata, "namespace")
			rest["metadata"] = metadata
		}
		return rest
	}

	return patch
}

func (r *reader) keep(value any) {
	for _, v := range loader.SecretValues(map[string]any{"": value}) {
		r.secret[v.Value] = struct{}{}
	}
}
