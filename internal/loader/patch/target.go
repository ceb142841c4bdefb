package patch

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
)

// Target selects the objects that match all fields. Group, Kind and Name are regular expressions
// that match the whole text.
type Target struct {
	Group, Kind, Name string
	// LabelSelector selects by the labels of the object, such as "app in (a, b)".
	LabelSelector string
}

// matcher is a compiled Target. A nil field matches everything.
type matcher struct {
	group, kind, name *regexp.Regexp
	labels            labels.Selector
	// namespace is the namespace of a merge patch without a target, if it names one.
	namespace string
}

// compileTarget compiles the target of a patch; merge is nil for a JSON patch.
func compileTarget(t Target, merge map[string]any) (*matcher, *Problem) {
	if t == (Target{}) {
		return implied(merge)
	}

	m := &matcher{}
	for _, part := range []struct {
		field, text string
		into        **regexp.Regexp
	}{{"group", t.Group, &m.group}, {"kind", t.Kind, &m.kind}, {"name", t.Name, &m.name}} {
		if part.text == "" {
			continue
		}
		if problem := tooLong(part.field, part.text); problem != nil {
			return nil, problem
		}
		// As in kustomize, expressions match the whole text.
		compiled, err := regexp.Compile("^(?:" + part.text + ")$")
		if err != nil {
			return nil, &Problem{Part: "target." + part.field, Details: fmt.Sprintf("%q is neither a name nor a regular expression", part.text)}
		}
		*part.into = compiled
	}

	if t.LabelSelector == "" {
		return m, nil
	}
	if problem := tooLong("labelSelector", t.LabelSelector); problem != nil {
		return nil, problem
	}

	selector, err := labels.Parse(t.LabelSelector)
	if err != nil {
		return nil, &Problem{Part: "target.labelSelector", Details: fmt.Sprintf("%q is not a label selector: %v", t.LabelSelector, err)}
	}

	m.labels = selector
	return m, nil
}

// tooLong bounds an expression, which is matched with each object.
func tooLong(field, text string) *Problem {
	if len(text) <= limits.TemplatePatternBytes {
		return nil
	}
	return &Problem{Part: "target." + field, Details: fmt.Sprintf("%d bytes; the limit is %d", len(text), limits.TemplatePatternBytes), Limit: true}
}

// implied returns the target of a merge without one: the object that it names itself.
func implied(merge map[string]any) (*matcher, *Problem) {
	if merge == nil {
		return nil, &Problem{Part: "target", Details: "a JSON patch needs a target"}
	}

	meta, _ := merge["metadata"].(map[string]any)
	apiVersion, _ := merge["apiVersion"].(string)
	kind, _ := merge["kind"].(string)
	name, _ := meta["name"].(string)
	if apiVersion == "" || kind == "" || name == "" {
		return nil, &Problem{Part: "target", Details: "the patch has no target, and does not name its object by apiVersion, kind and metadata.name"}
	}

	exactly := func(text string) *regexp.Regexp { return regexp.MustCompile("^" + regexp.QuoteMeta(text) + "$") }
	namespace, _ := meta["namespace"].(string)
	return &matcher{group: exactly(schema.FromAPIVersionAndKind(apiVersion, "").Group), kind: exactly(kind), name: exactly(name), namespace: namespace}, nil
}

// matches reports whether a patch applies to an object.
func (m *matcher) matches(object map[string]any) bool {
	meta, _ := object["metadata"].(map[string]any)
	text := func(from map[string]any, key string) string {
		s, _ := from[key].(string)
		return s
	}
	// Versions do not matter for the identity of an object.
	group := schema.FromAPIVersionAndKind(text(object, "apiVersion"), "").Group
	if m.group != nil && !m.group.MatchString(group) ||
		m.kind != nil && !m.kind.MatchString(text(object, "kind")) ||
		m.name != nil && !m.name.MatchString(text(meta, "name")) ||
		m.namespace != "" && m.namespace != text(meta, "namespace") {
		return false
	}

	if m.labels == nil {
		return true
	}

	set := labels.Set{}
	values, _ := meta["labels"].(map[string]any)
	for key := range values {
		set[key] = text(values, key)
	}

	return m.labels.Matches(set)
}
