package loader

import (
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/sensitive"
	"lockstep.run/lockstep/internal/loader/violation"
)

// SecretValues returns the values of a configuration that comes from a Secret.
func SecretValues(config map[string]any) []SecretValue {
	var out []SecretValue
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		// Without spare capacity, append copies the path. Otherwise siblings would overwrite each
		// other's.
		path = path[:len(path):len(path)]
		switch v := v.(type) {
		case map[string]any:
			for _, key := range sortedKeys(v) {
				walk(v[key], append(path, key))
			}
		case []any:
			for i, item := range v {
				walk(item, append(path, strconv.Itoa(i)))
			}
		default:
			if text, ok := textOf(v); ok {
				out = append(out, SecretValue{Path: path, Value: text})
			}
		}
	}

	walk(config, nil)
	return out
}

// textOf returns a text or a number as text.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}

// sensitiveValues collects the values that only Secrets can hold, and reports whether they are
// within limits.
func (l *load) sensitiveValues() bool {
	values := l.opts.Sensitive
	for _, v := range l.opts.FromSecrets {
		if l.unit.result.SecretByItsSchema(v.Path) {
			values = append(values[:len(values):len(values)], v.Value)
		}
	}
	var err error
	if l.secrets, err = sensitive.New(values); err != nil {
		l.add(violation.Violation{Reason: violation.ReasonLimit, Field: "spec.configFrom", Details: err.Error(), Remedy: "Name smaller Secrets, with only the values that the package needs."})
	}
	return err == nil
}

// redact removes sensitive values from violations, in place. Values can get into them by names of
// fields, by values in messages, and by errors of libraries.
func (l *load) redact(vs violation.Violations) violation.Violations {
	if l.secrets.Empty() {
		return vs
	}
	for i := range vs {
		v := &vs[i]
		v.Object, v.Field = l.secrets.RedactWords(v.Object), l.secrets.RedactWords(v.Field)
		v.Details, v.Remedy = l.secrets.RedactWords(v.Details), l.secrets.RedactWords(v.Remedy)
	}
	return vs
}

// errorBody returns the text of a validator's error without a sensitive value.
func (l *load) errorBody(e *field.Error) string {
	if l.secrets.Is(e.BadValue) {
		e = &field.Error{Type: e.Type, Field: e.Field, BadValue: field.OmitValueType{}, Detail: e.Detail}
	}
	return e.ErrorBody()
}

// secrets refuses sensitive values outside of the values of a Secret, unless the object has the
// annotation that exposes them.
func (c *check) secrets(annotations map[string]any) {
	if c.r.secrets.Empty() {
		return
	}

	body := c.body
	if c.out.gvk.GroupKind() == secretKind {
		c.out.sensitive = true
		body = maps.Clone(body)
		for _, values := range []string{"data", "stringData"} {
			// Messages of servers and schemas contain keys.
			fields, _ := body[values].(map[string]any)
			keys := make(map[string]any, len(fields))
			for key := range fields {
				keys[key] = nil
			}
			body[values] = keys
		}
	}

	const most = 5
	count, exposed := 0, annotations[corev1alpha1.ExposeSecretValuesAnnotation] == corev1alpha1.ExposeSecretValuesTrue
	walk(body, "", func(field string, v any) bool {
		text, ok := textOf(v)
		if !ok {
			return true
		}
		found, err := c.r.secrets.In(text)
		if err != nil {
			c.fail(violation.ReasonLimit, field, "Name Secrets with values that differ.", "%v", err)
			return false
		}
		if !found {
			return true
		}
		c.out.sensitive = true
		// One value suffices to mark the object as sensitive.
		if exposed {
			return false
		}
		c.fail(violation.ReasonSecretExposed, field, "", "a value that came from a Secret stands here")
		count++
		return count < most
	})
}

// exposedToAgents returns objects with sensitive values in phases with a class. An ObjectSetPhase
// would contain them, and it is not a Secret.
func exposedToAgents(all []*object) violation.Violations {
	var problems violation.Violations
	for _, o := range all {
		if o.class != "" && o.sensitive {
			problems = append(problems, o.violation(violation.ReasonSecretExposed, "").Because(
				"Put it into a phase without a class, or set sensitive: false if the value is not a secret.",
				"phase %q has the class %q, and its ObjectSetPhase would hold a value that came from a Secret", o.phase, o.class))
		}
	}
	return problems
}
