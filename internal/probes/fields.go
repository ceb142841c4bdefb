package probes

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
)

// fieldsEqualProbe is True if two fields exist and have equal values. Numbers are compared by value
// within their type.
type fieldsEqualProbe struct{ a, b field }

// field reads one value of an object: a dotted path or a jq expression. paths returns a superset of
// the fields that it reads, for [Needs].
type field interface {
	read(o *object) (value any, found bool, err error)
	text() string
	paths() [][]string
}

// evaluate reports a missing field before it compares: two missing fields do not count as equal, so
// that an object without a status does not pass.
func (p fieldsEqualProbe) evaluate(o *object) outcome {
	a, problem := readField(p.a, o)
	if problem != nil {
		return *problem
	}

	b, problem := readField(p.b, o)
	if problem != nil {
		return *problem
	}
	if equality.Semantic.DeepEqual(a, b) {
		return outcome{status: True}
	}
	if o.secret {
		return outcome{status: False, message: fmt.Sprintf("%q and %q differ", p.a.text(), p.b.text())}
	}

	return outcome{status: False, message: fmt.Sprintf("%q is %s, %q is %s",
		p.a.text(), jsonText(a), p.b.text(), jsonText(b))}
}

// readField returns the value, or the probe's outcome if the object has no such field.
func readField(f field, o *object) (any, *outcome) {
	value, found, err := f.read(o)
	switch {
	case err != nil && o.secret && !errors.Is(err, errBound):
		// jq quotes values in its errors, and this object is a Secret.
		return nil, &outcome{message: fmt.Sprintf("jq failed: %q cannot be evaluated on this object", f.text())}
	case err != nil:
		return nil, &outcome{message: fmt.Sprintf("jq failed: %q: %s", f.text(), quoted(err.Error()))}
	case !found:
		return nil, &outcome{status: False, message: fmt.Sprintf("%q missing", f.text())}
	}
	return value, nil
}

// jsonText returns a value as JSON for a message, cut to its length.
func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("a %T", value)
	}
	return quoted(string(text))
}

// plainPath is a dotted path; every other text is jq.
var plainPath = regexp.MustCompile(`^\.*[A-Za-z0-9_/-]+(\.[A-Za-z0-9_/-]+)*\.*$`)

// newField returns a dotted path without jq if the text is one. Dotted paths are more common, cost
// less, and have no limits to exceed.
func newField(text string) (field, error) {
	if strings.TrimSpace(text) == "" {
		return nil, &refusal{"is empty", "name a field, e.g. .status.replicas"}
	}
	if plainPath.MatchString(text) {
		return dottedPath{raw: text, keys: strings.Split(strings.Trim(text, "."), ".")}, nil
	}
	return jqPrograms.get(text, compileJQ)
}

// dottedPath navigates maps. It supports neither indices nor escaping.
type dottedPath struct {
	raw  string
	keys []string
}

func (p dottedPath) read(o *object) (any, bool, error) {
	value, found := lookup(o.root, p.keys...)
	return value, found, nil
}

func (p dottedPath) text() string { return p.raw }

func (p dottedPath) paths() [][]string { return [][]string{p.keys} }

// conditionProbe is True if the object reports a condition for its current generation.
type conditionProbe struct{ conditionType, status string }

// evaluate reports a missing condition as Unknown, because controllers write conditions some time
// after the object is created.
func (p conditionProbe) evaluate(o *object) outcome {
	value, found := lookup(o.root, "status", "conditions")
	if !found || value == nil { // the conditions of a new CustomResourceDefinition are null
		return outcome{message: "missing .status.conditions"}
	}

	list, isList := value.([]any)
	if !isList {
		return outcome{message: "malformed .status.conditions"}
	}

	missing := outcome{message: fmt.Sprintf(`missing .status.condition[%q]`, p.conditionType)}
	for _, element := range list {
		condition, isMap := element.(map[string]any)
		if !isMap {
			return outcome{message: "malformed .status.conditions"}
		}
		switch {
		case condition["type"] == p.conditionType:
			return p.check(condition, o.generation)
		case condition["type"] == "Failed" && condition["status"] == "True": // a failed Job never completes
			missing.message = fmt.Sprintf("has failed: %v: %s", condition["reason"], quoted(fmt.Sprint(condition["message"])))
		}
	}

	return missing
}

// check evaluates the first condition of the type and ignores later ones. Controllers that do not
// fill in observedGeneration are trusted to report on the present generation.
func (p conditionProbe) check(condition map[string]any, generation int64) outcome {
	if observed, isInteger := condition["observedGeneration"].(int64); isInteger && observed != generation {
		return outcome{message: fmt.Sprintf(`.status.condition[%q] outdated`, p.conditionType), outdated: true}
	}
	if condition["status"] == p.status {
		return outcome{status: True}
	}
	actual := quoted(fmt.Sprint(condition["status"]))
	return outcome{
		status:    False,
		message:   fmt.Sprintf(`.status.condition[%q] is %s`, p.conditionType, actual),
		condition: true,
	}
}
