package probes

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
)

// fieldsEqualProbe is True if both fields exist and are equal.
type fieldsEqualProbe struct{ a, b field }

// field reads one value of an object.
type field interface {
	// read returns the value, and whether it exists.
	read(o *object) (value any, found bool, err error)
	// text is the field as the author wrote it.
	text() string
	// paths are the fields of the object that are read.
	paths() [][]string
}

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

// readField returns the value, or the outcome where there is none.
func readField(f field, o *object) (any, *outcome) {
	value, found, err := f.read(o)
	switch {
	case err != nil && o.secret && !errors.Is(err, errBound):
		// jq quotes values in its errors.
		return nil, &outcome{message: fmt.Sprintf("jq failed: %q cannot be evaluated on this Secret", f.text())}
	case err != nil:
		return nil, &outcome{message: fmt.Sprintf("jq failed: %q: %s", f.text(), quoted(err.Error()))}
	case !found:
		return nil, &outcome{status: False, message: fmt.Sprintf("%q missing", f.text())}
	}
	return value, nil
}

func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("a %T", value)
	}
	return quoted(string(text))
}

// plainPath is a dotted path; every other text is jq.
var plainPath = regexp.MustCompile(`^\.*[A-Za-z0-9_/-]+(\.[A-Za-z0-9_/-]+)*\.*$`)

// newField takes a dotted path or a jq expression.
func newField(text string) (field, error) {
	if strings.TrimSpace(text) == "" {
		return nil, &refusal{"is empty", "name a field, e.g. .status.replicas"}
	}
	if plainPath.MatchString(text) {
		return dottedPath{raw: text, keys: strings.Split(strings.Trim(text, "."), ".")}, nil
	}
	return jqPrograms.get(text, compileJQ)
}

// dottedPath navigates maps. It has no indices and no escaping.
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
