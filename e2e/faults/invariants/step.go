package invariants

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lockstep.run/lockstep/e2e/sandbox"
)

// Object names an object as the audit log does.
type Object struct{ Group, Resource, Namespace, Name string }

// String returns the object as in "configmaps shop/one".
func (o Object) String() string {
	name := o.Resource
	if o.Group != "" {
		name += "." + o.Group
	}
	return name + " " + o.Namespace + "/" + o.Name
}

// ConfigMap names a ConfigMap.
func ConfigMap(namespace, name string) Object {
	return Object{Resource: "configmaps", Namespace: namespace, Name: name}
}

// Secret names a Secret.
func Secret(namespace, name string) Object {
	return Object{Resource: "secrets", Namespace: namespace, Name: name}
}

// Of returns the object of a request.
func Of(e sandbox.Entry) Object {
	return Object{Group: e.Object.Group, Resource: e.Object.Resource, Namespace: e.Object.Namespace, Name: e.Object.Name}
}

// Place is an object's phase in a revision, and its desired content.
type Place struct {
	// Phase counts from 0.
	Phase int
	// Content differs between two revisions if and only if the desired object differs,
	// apart from the engine's labels.
	Content string
	// Keep means that the object is released and not deleted.
	Keep bool
}

// Content contains the objects of a revision.
type Content map[Object]Place

// Step is a change of one deployment's desired state, and the requests until it ended. It is an
// install if From is empty, and a deletion if To is empty; otherwise an upgrade. If both are equal,
// there is no rollout, as during drift.
type Step struct {
	Name string
	// Manager is the user name of the engine.
	Manager  string
	From, To Content
	// Writes are the requests of all clients in the order of their ends. They exclude dry runs and
	// refused requests.
	Writes []sandbox.Entry
	// Gated reports whether an object makes its phase wait until it is made ready. A gate that is
	// not written in this step is ready all along.
	Gated func(Object) bool
	// Operators are the users whose writes make gates ready; nil means all users except the
	// manager.
	Operators []string
	// Drifted are objects that other clients changed or deleted in this step. The engine can
	// write them in any order in phases that were already open.
	Drifted []Object
	// Foreign are objects that other controllers own during the whole step.
	Foreign []Object
	// Recreated are objects that have to be replaced, because the step changes an immutable
	// field.
	Recreated []Object
	// Unfinished means that the step was interrupted: a missing write or deletion is
	// not a violation.
	Unfinished bool
	// Revision returns the number of the revision that a write of the manager belongs
	// to, 0 if it is unknown. It can be nil.
	Revision func(sandbox.Entry) int64
}

// Violation is a broken invariant.
type Violation struct {
	Step      string
	Invariant int
	Message   string
}

// String names the step, the invariant and the violation.
func (v Violation) String() string {
	return fmt.Sprintf("%s: invariant %d: %s", v.Step, v.Invariant, v.Message)
}

// Judge returns the violations of invariants 1, 2, 3 and 6 among the step's requests.
func (s Step) Judge() []Violation {
	return slices.Concat(s.Order(), s.Removals(), s.Writers())
}

func (s Step) violation(invariant int, format string, args ...any) Violation {
	return Violation{Step: s.Name, Invariant: invariant, Message: fmt.Sprintf(format, args...)}
}

// Changed returns the objects that the step creates or changes, sorted.
func (s Step) Changed() []Object {
	return s.sorted(s.To, func(o Object, to Place) bool {
		from, had := s.From[o]
		return !had || from.Content != to.Content
	})
}

// Removed returns the objects that the step deletes, sorted.
func (s Step) Removed() []Object {
	return s.sorted(s.From, func(o Object, from Place) bool {
		_, stays := s.To[o]
		return !stays && !from.Keep
	})
}

func (s Step) sorted(content Content, accept func(Object, Place) bool) []Object {
	var found []Object
	for o, place := range content {
		if accept(o, place) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, compare)
	return found
}

func compare(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// took reports whether a request changed something.
func took(e sandbox.Entry) bool { return sandbox.Writes()(e) && e.Code >= 200 && e.Code < 300 }

// applied returns the manager's successful writes of objects, ordered by their time of arrival.
func (s Step) applied() []sandbox.Entry {
	return s.mine(func(e sandbox.Entry) bool {
		return (e.Verb == "patch" || e.Verb == "create" || e.Verb == "update") && e.Object.Subresource == ""
	})
}

func (s Step) deleted() []sandbox.Entry {
	return s.mine(func(e sandbox.Entry) bool { return e.Verb == "delete" })
}

func (s Step) mine(accept func(sandbox.Entry) bool) []sandbox.Entry {
	var found []sandbox.Entry
	for _, e := range s.Writes {
		if e.User == s.Manager && took(e) && accept(e) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b sandbox.Entry) int { return a.Received.Compare(b.Received) })
	return found
}

func stamp(t time.Time) string { return t.Format("15:04:05.000000") }
