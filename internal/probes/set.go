package probes

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"lockstep.run/lockstep/internal/limits"
)

const probeCost = 10 // of a probe, in addition to the cost that CEL and jq count

// Set is the compiled probes of one revision. It is immutable. A nil Set selects nothing.
type Set struct {
	entries map[schema.GroupKind][]entry
	needs   map[schema.GroupKind]Needs
}

// entry is the compiled probes of one selector. The kind is the key in the Set.
type entry struct {
	labels labels.Selector
	probes []probe
}

// probe is one check of an object. It adds what the evaluation cost to the object.
type probe interface{ evaluate(o *object) outcome }

// Compile compiles availabilityProbes. Its error is of type [Errors]. If an entry has several
// checks, fieldsEqual wins over condition, and condition over cel.
func Compile(probes []Entry) (*Set, error) {
	count := 0
	for i := range probes {
		count += len(probes[i].Probes)
	}

	if count > limits.Probes {
		return nil, Errors{{"availabilityProbes", fmt.Sprintf("%d probes, the limit is %d", count, limits.Probes), "combine them into fewer CEL rules"}}
	}

	c := compiler{set: &Set{entries: map[schema.GroupKind][]entry{}, needs: map[schema.GroupKind]Needs{}}}
	for i := range probes {
		c.entry(fmt.Sprintf("availabilityProbes[%d]", i), &probes[i])
	}

	if len(c.errs) > 0 {
		return nil, c.errs
	}

	for gk, needs := range c.set.needs {
		c.set.needs[gk] = needs.normalised()
	}

	return c.set, nil
}

// compiler collects all errors of a revision, so that an author sees them at once.
type compiler struct {
	set  *Set
	errs Errors
}

// refuse adds an error at a path. An error that is not a refusal is not the author's fault.
func (c *compiler) refuse(path string, err error) {
	if err == nil {
		return
	}
	var because *refusal
	if !errors.As(err, &because) {
		because = &refusal{err.Error(), "report this as a defect of the engine"}
	}
	c.errs = append(c.errs, FieldError{Path: path, Problem: because.problem, Remedy: because.remedy})
}

// entry compiles one entry. It continues after an error, and the Set is then not used.
func (c *compiler) entry(path string, from *Entry) {
	kind := from.Selector.Kind
	if kind == nil || kind.Kind == "" {
		c.refuse(path+".selector.kind", &refusal{"is missing", "name group and kind of the objects to probe"})
	}

	compiled := entry{labels: labels.Everything()}
	if from.Selector.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(from.Selector.Selector)
		if err != nil {
			c.refuse(path+".selector.selector", &refusal{err.Error(), "write a Kubernetes label selector"})
		}
		compiled.labels = selector
	}

	var needs Needs
	for i := range from.Probes {
		check, paths := c.probe(fmt.Sprintf("%s.probes[%d]", path, i), &from.Probes[i])
		if check != nil {
			compiled.probes = append(compiled.probes, check)
			needs.add(paths)
		}
	}

	if kind != nil {
		gk := schema.GroupKind{Group: kind.Group, Kind: kind.Kind}
		c.set.entries[gk] = append(c.set.entries[gk], compiled)
		needs.merge(c.set.needs[gk])
		c.set.needs[gk] = needs
	}
}

// probe compiles one check and returns it with the fields it reads. It returns nil if the entry has
// no check.
func (c *compiler) probe(path string, from *Probe) (check probe, paths [][]string) {
	switch {
	case from.FieldsEqual != nil:
		a, errA := newField(from.FieldsEqual.FieldA)
		b, errB := newField(from.FieldsEqual.FieldB)
		c.refuse(path+".fieldsEqual.fieldA", errA)
		c.refuse(path+".fieldsEqual.fieldB", errB)
		if errA != nil || errB != nil {
			return nil, nil
		}
		return fieldsEqualProbe{a: a, b: b}, append(a.paths(), b.paths()...)
	case from.Condition != nil:
		return conditionProbe{conditionType: from.Condition.Type, status: cmp.Or(from.Condition.Status, string(metav1.ConditionTrue))}, nil
	case from.CEL != nil:
		program, err := celPrograms.get(from.CEL.Rule, compileCEL)
		if err != nil {
			c.refuse(path+".cel.rule", err)
			return nil, nil
		}
		return celProbe{celProgram: program, message: from.CEL.Message}, program.reads
	default:
		return nil, nil
	}
}

// outdatedStatus is the message for a status of an earlier generation, in Package Operator's words.
const outdatedStatus = ".status outdated"

// Selects reports whether any entry selects this kind. The labels can still exclude a single
// object.
func (s *Set) Selects(gk schema.GroupKind) bool {
	return s != nil && len(s.entries[gk]) > 0
}

// Evaluate evaluates one live object, whole or trimmed, whose numbers are decoded as int64 and
// float64.
func (s *Set) Evaluate(obj map[string]any) Result {
	result, _ := s.evaluate(obj, false)
	return result
}

// evaluate also returns the cost. It skips probes beyond limits.ProbeObjectCost.
func (s *Set) evaluate(obj map[string]any, exposes bool) (result Result, cost int) {
	if s == nil {
		return Result{Status: True}, 0
	}

	o := newObject(obj)
	o.secret = o.secret || exposes
	var all conjunction
	for _, entry := range s.entries[o.kind] {
		if !entry.labels.Matches(o.labels()) {
			continue
		}
		// A status of an earlier generation describes other content, whatever the probes find in
		// it.
		if o.outdated() {
			all.add(outcome{message: outdatedStatus, outdated: true})
			continue
		}
		for _, probe := range entry.probes {
			if o.cost += probeCost; o.cost > limits.ProbeObjectCost {
				all.add(outcome{message: fmt.Sprintf("the probes of this object cost more than %d together: simplify them", limits.ProbeObjectCost)})
				return all.result(), o.cost
			}
			all.add(probe.evaluate(o))
		}
	}

	// A probe ran and passed on counters that the controller has not filled in yet.
	if o.cost > 0 && o.unobserved() && all.result().Status == True {
		all.add(outcome{message: outdatedStatus, outdated: true})
	}

	return all.result(), o.cost
}

// EvaluateTrimmed evaluates an object as [Trim] returns it, and returns the cost. An unreadable
// object is Unknown. Messages quote values neither of a Secret nor of an object that exposes values
// of Secrets.
func (s *Set) EvaluateTrimmed(trimmed []byte, exposes bool) (result Result, cost int) {
	obj := map[string]any{}
	if err := json.Unmarshal(trimmed, &obj); err != nil {
		return Result{Messages: []string{"malformed object"}}, probeCost
	}
	return s.evaluate(obj, exposes)
}

// FieldError is an unusable probe with its problem and a remedy.
type FieldError struct {
	Path, Problem, Remedy string
}

// Error returns path, problem and remedy in one line.
func (e FieldError) Error() string {
	return e.Path + ": " + e.Problem + " (" + e.Remedy + ")"
}

// Errors are all invalid probes of a revision, in order. [Compile] returns no other type of error.
type Errors []FieldError

// Error joins the errors with "; ".
func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i := range e {
		texts[i] = e[i].Error()
	}
	return strings.Join(texts, "; ")
}

// refusal is the problem of an expression without its path, which the compiler adds.
type refusal struct{ problem, remedy string }

func (r *refusal) Error() string { return r.problem + " (" + r.remedy + ")" }
