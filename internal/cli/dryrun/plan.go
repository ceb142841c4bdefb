package dryrun

import (
	"fmt"
	"strings"

	"lockstep.run/lockstep/internal/cli/objectdiff"
)

// Outcome of a plan.
type Outcome string

// Outcomes of plans. A refused plan stops before its end.
const (
	OutcomeNothing Outcome = "Nothing"
	OutcomeChanges Outcome = "Changes"
	OutcomeRefused Outcome = "Refused"
)

// Plan is the effect of an install or upgrade. Its JSON fields are stable.
type Plan struct {
	Kind      string  `json:"kind"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	Outcome   Outcome `json:"outcome"`

	// Revision is the number that the revision would have.
	Revision int64 `json:"revision"`
	// From is the installed release, if there is one.
	To   Release  `json:"to"`
	From *Release `json:"from,omitempty"`

	// Dependencies of the package, and the Installations they need, dependencies first.
	Dependencies  []Dependency   `json:"dependencies,omitempty"`
	Installations []Installation `json:"installations,omitempty"`

	// Refusals are the reasons why the engine would stop, in the order of the phases.
	Refusals []Refusal `json:"refusals,omitempty"`
	Phases   []Phase   `json:"phases"`

	// Cleanup has the objects that only older revisions have, in the order of their removal.
	Cleanup []Change        `json:"cleanup,omitempty"`
	Powers  []PrivilegeGain `json:"powers,omitempty"`
	Losses  []DataLoss      `json:"losses,omitempty"`

	// Deletes means that the package is deleted along with the objects of Cleanup.
	Deletes bool `json:"deletes,omitempty"`
	// Stranded are definitions whose resources have finalizers of a controller that might be
	// deleted first.
	Stranded []DataLoss `json:"stranded,omitempty"`
	Warnings []string   `json:"warnings,omitempty"`
	Summary  Summary    `json:"summary"`
}

// Release is a package in one version.
type Release struct {
	// Image is empty for a package in a Folder.
	Image   string `json:"image,omitempty"`
	Folder  string `json:"folder,omitempty"`
	Digest  string `json:"digest,omitempty"`
	Package string `json:"package,omitempty"`
	Version string `json:"version,omitempty"`

	// Revision is the newest installed one.
	Revision int64 `json:"revision,omitempty"`
}

// Phase describes the changes in one phase.
type Phase struct {
	Name string `json:"name"`
	// Reached means that the engine would start the phase.
	Reached   bool     `json:"reached"`
	Changes   []Change `json:"changes,omitempty"`
	Unchanged int      `json:"unchanged"`
}

// Action is the change of an object.
type Action string

const (
	// ActionCreate creates an absent object.
	ActionCreate Action = "Create"
	// ActionChange changes fields.
	ActionChange Action = "Change"
	// ActionCorrect removes drift.
	ActionCorrect Action = "Correct"
	// ActionTakeOver adopts an object that has another controller, or no controller.
	ActionTakeOver Action = "TakeOver"
	// ActionReplace deletes an object and creates it again.
	ActionReplace Action = "Replace"
	// ActionRelabel changes only the well-known labels.
	ActionRelabel Action = "Relabel"
	// ActionDelete deletes an object.
	ActionDelete Action = "Delete"
	// ActionRelease leaves an object without a controller.
	ActionRelease Action = "Release"
	// ActionRefuse keeps an object that the engine would not write.
	ActionRefuse Action = "Refuse"
)

// Change is the change of one object.
type Change struct {
	Action Action `json:"action"`
	objectdiff.ID

	// From is the former controller of an adopted object.
	From string `json:"from,omitempty"`
	// Class of the agent that writes the objects in an ObjectSetPhase, which is not predicted.
	Class string `json:"class,omitempty"`
	// Reached means that the engine would write the object.
	Reached bool `json:"reached"`

	// Fields that differ, sorted by path; none for objects that are created or deleted.
	Fields []Field `json:"fields,omitempty"`
	// Unverified is the reason why no dry run was possible.
	Unverified string `json:"unverified,omitempty"`
	// Message is the reason why an object is refused, or released instead of deleted.
	Message string `json:"message,omitempty"`
}

// Field is one field that differs.
type Field struct {
	objectdiff.Change
	// Managers that have the field now, without the engine.
	Managers []string `json:"managers,omitempty"`
}

// Refusal is a reason why the engine would stop.
type Refusal struct {
	// Phase is empty if no object of the package would be written.
	Phase string `json:"phase,omitempty"`
	objectdiff.ID

	// Fields that must not change.
	Fields  []string `json:"fields,omitempty"`
	Message string   `json:"message"`
}

// DataLoss is data that might be lost.
type DataLoss struct {
	Object  string `json:"object"`
	Message string `json:"message"`
	// others means that other owners' objects are lost.
	others bool
}

// PrivilegeGain is a right that a subject gains.
type PrivilegeGain struct {
	// Subject, such as "ServiceAccount shop/web"; empty if the role is bound elsewhere.
	Subject string `json:"subject,omitempty"`
	// Role grants it, and Binding gives it to the subject.
	Role    string `json:"role"`
	Binding string `json:"binding,omitempty"`

	// Namespace that limits it; empty for the whole cluster.
	Namespace string   `json:"namespace,omitempty"`
	Verbs     []string `json:"verbs"`
	APIGroups []string `json:"apiGroups,omitempty"`
	Resources []string `json:"resources,omitempty"`
	Names     []string `json:"resourceNames,omitempty"`
	URLs      []string `json:"nonResourceURLs,omitempty"`
}

// Summary counts objects by their change.
type Summary struct {
	Create    int `json:"create"`
	Change    int `json:"change"`
	Correct   int `json:"correct"`
	TakeOver  int `json:"takeOver"`
	Replace   int `json:"replace"`
	Relabel   int `json:"relabel"`
	Delete    int `json:"delete"`
	Release   int `json:"release"`
	Refuse    int `json:"refuse"`
	Unchanged int `json:"unchanged"`
}

// counter counts the objects with an action; empty for unchanged ones.
type counter struct {
	action Action
	n      *int
	words  string
}

// counters returns the counters in the order of String.
func (s *Summary) counters() []counter {
	return []counter{
		{ActionCreate, &s.Create, "to create"}, {ActionChange, &s.Change, "to change"}, {ActionCorrect, &s.Correct, "to correct"},
		{ActionTakeOver, &s.TakeOver, "to take over"}, {ActionReplace, &s.Replace, "to replace"}, {ActionRelabel, &s.Relabel, "to relabel"},
		{ActionDelete, &s.Delete, "to delete"}, {ActionRelease, &s.Release, "to release"}, {ActionRefuse, &s.Refuse, "refused"},
		{"", &s.Unchanged, "unchanged"},
	}
}

// finish sets the summary and the outcome.
func (p *Plan) finish() {
	p.Summary = Summary{}

	all := p.Cleanup
	for i := range p.Phases {
		p.Summary.Unchanged += p.Phases[i].Unchanged
		// The capacity is limited, so that append copies instead of writing into Cleanup.
		all = append(all[:len(all):len(all)], p.Phases[i].Changes...)
	}

	for _, c := range p.Summary.counters() {
		for i := range all {
			if all[i].Action == c.action {
				*c.n++
			}
		}
	}

	switch {
	case len(p.Refusals) > 0:
		p.Outcome = OutcomeRefused
	case len(all) > 0:
		p.Outcome = OutcomeChanges
	default:
		p.Outcome = OutcomeNothing
	}
}

// String returns a text such as "2 to create, 1 unchanged". Counters of zero are omitted.
func (s Summary) String() string {
	var parts []string
	for _, c := range s.counters() {
		if *c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", *c.n, c.words))
		}
	}

	if len(parts) == 0 {
		return "no objects"
	}
	return strings.Join(parts, ", ")
}

// Dependency is a dependency of a package after the change. Its JSON fields are stable.
type Dependency struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"`

	// Satisfied means that there is no need to wait. Failed means that waiting does not help.
	Satisfied bool   `json:"satisfied"`
	Failed    bool   `json:"failed,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`

	// By is the satisfying object, such as "Package shop/shop.db", in Version.
	By      string `json:"by,omitempty"`
	Version string `json:"version,omitempty"`
}

// Installation is a package that would be installed or changed because others depend on it. Its
// JSON fields are stable.
type Installation struct {
	// Object, such as "Package shop/shop.db".
	Object  string `json:"object"`
	Package string `json:"package"`
	Version string `json:"version"`
	// From is the version before a change; empty if the package is created.
	From string `json:"from,omitempty"`
	// Because are the dependencies that require it, such as "Package shop/shop → db (>=1)".
	Because []string `json:"because"`
}

// Depend adds the dependencies of the package.
func (p *Plan) Depend(dependencies []Dependency, installations []Installation) {
	p.Dependencies, p.Installations = dependencies, installations
	switch {
	case p.Unsatisfied() > 0:
		p.Outcome = OutcomeRefused
	case len(installations) > 0 && p.Outcome == OutcomeNothing:
		p.Outcome = OutcomeChanges
	}
}

// Unsatisfied is the number of unsatisfiable dependencies, without optional ones.
func (p *Plan) Unsatisfied() int {
	n := 0
	for _, d := range p.Dependencies {
		if d.Failed && !d.Optional {
			n++
		}
	}
	return n
}
