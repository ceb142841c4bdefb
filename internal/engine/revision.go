package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
)

// Revision is a loaded revision: the input of the pure core, and its compiled probes.
type Revision struct {
	phases.Revision
	Probes *probes.Set
	// Unscoped are objects whose kind was not served at loading, so that the
	// scope rule is checked again.
	Unscoped []objects.Key
	// TooManyPhases means that the phases exceed limits.PhaseBytes, so that the revision
	// is never rolled out.
	TooManyPhases bool
	// ClaimedAtCreation means that the set was created with its claim, and that its status might
	// not show it yet.
	ClaimedAtCreation bool
	// Refusals are objects that the revision cannot have because another owner holds them; Blocked
	// describes them. Without them, only another spec ends Blocked.
	Refusals []phases.Blocker
	// Unauthorized is why the account of the revision cannot roll it out, nil if it can. Blocked
	// describes it, too.
	Unauthorized *Unauthorized
	// Sensitive means that the revision has objects in Secrets: the API server's words about its
	// objects are not repeated.
	Sensitive bool
	// ReadsStatus means that records keep the status of its objects, regardless of the probes.
	ReadsStatus bool

	cachedResults map[objects.Key]cachedResult
	// cost is the cost of the cachedResults.
	cost int
	// graces has the readiness grace of each object that is in its grace.
	graces map[objects.Key]*phases.ReadinessGrace
	// ready are the phases that were ready when this process started.
	ready []bool
	// fieldGenerations has, by kind, the generation from which on records have the fields that the
	// probes read.
	fieldGenerations map[schema.GroupKind]uint32
	// recheck is when a refused revision is checked again, and progressed when its last phase was
	// opened in this process; zero for never.
	recheck, progressed time.Time
	// looks counts the checks in a row that found missing rights, or that could not be made.
	looks int
	// exposes reports whether a revision of the owner exposes values of Secrets in an object; it
	// can be nil.
	exposes func(objects.Key) bool
}

// Unauthorized is why a revision is neither claimed nor written: its account does not exist, or
// lacks rights.
type Unauthorized struct{ Reason, Message string }

// cachedResult is the result of a revision's probes on a record, and its cost.
type cachedResult struct {
	obs    *objects.Observed
	result probes.Result
	cost   int
}

// NewRevision returns a revision without objects. Its phases are set before its probes, and both
// before it is put into a Rollout.
func NewRevision() *Revision {
	return &Revision{
		cachedResults: map[objects.Key]cachedResult{}, graces: map[objects.Key]*phases.ReadinessGrace{}, fieldGenerations: map[schema.GroupKind]uint32{},
	}
}

// SetProbes sets the probes of the objects. An ObjectSetPhase is probed in any case.
func (r *Revision) SetProbes(by *probes.Set) {
	r.Probes, r.Probed = by, sets.Set[schema.GroupKind]{}
	for _, d := range r.Objects() {
		if gk := d.Key.GroupKind(); d.Delegate != nil || by.Selects(gk) {
			r.Probed.Insert(gk)
		}
	}
}

// Kinds returns the kinds of the revision's objects.
func (r *Revision) Kinds() sets.Set[schema.GroupKind] {
	kinds := sets.Set[schema.GroupKind]{}
	for _, d := range r.Objects() {
		kinds.Insert(d.Key.GroupKind())
	}
	return kinds
}

// AssumeReady treats all probes as true.
func (r *Revision) AssumeReady() { r.Probes, r.Probed = &probes.Set{}, nil }

// reached returns the probed kinds whose watch has reached the revision. Kinds of another cluster
// have resource versions of their own.
func (r *Revision) reached(live cluster.LiveState) sets.Set[schema.GroupKind] {
	kinds := sets.Set[schema.GroupKind]{}
	if r.Metadata.Owner.Remote() {
		return kinds
	}

	for gk := range r.Probed {
		if live.Passed(gk, r.Since()) {
			kinds.Insert(gk)
		}
	}

	return kinds
}

// Keys returns the names of all objects in the order of the phases.
func (r *Revision) Keys() []objects.Key {
	var keys []objects.Key
	for _, d := range r.Objects() {
		keys = append(keys, d.Key)
	}
	return keys
}

// phaseNeeds are the fields that records of ObjectSetPhases keep in addition to the status.
var phaseNeeds = probes.Needs{Paths: [][]string{{"spec", "paused"}}}

// TakesOver returns the keys of objects that the revision takes over from any controller.
func (r *Revision) TakesOver() map[objects.Key]struct{} {
	over := map[objects.Key]struct{}{}
	for _, d := range r.Objects() {
		if d.Collision == objects.CollisionProtectionNone && !d.NeverAdopted {
			over[d.Key] = struct{}{}
		}
	}

	return over
}

// Needs returns the fields that the revision's probes and condition mappings read, by kind;
// unselected kinds are absent.
func (r *Revision) Needs() map[schema.GroupKind]probes.Needs {
	needs := map[schema.GroupKind]probes.Needs{}
	for gk := range r.Kinds() {
		if r.Probes.Selects(gk) {
			needs[gk] = r.Probes.Needs(gk)
		}
	}

	for _, d := range r.Objects() {
		gk := d.Key.GroupKind()
		if d.Delegate != nil {
			needs[gk] = needs[gk].Union(phaseNeeds)
		}
		if len(d.Mappings) > 0 || r.ReadsStatus {
			needs[gk] = needs[gk].Union(probes.Needs{}) // the status is kept in any case
		}
	}

	return needs
}

// Refuse sets the obstacles of the revision as a whole, which prevent all its writes; without
// blockers it is no longer blocked.
func (r *Revision) Refuse(blockers ...phases.Blocker) {
	r.Refusals = blockers
	r.Block(phases.Describe(blockers))
}

// Progressed returns when the last phase was opened in this process; zero for never.
func (r *Revision) Progressed() time.Time { return r.progressed }

// Refused reports whether another owner holds objects of the revision.
func (r *Revision) Refused() bool { return len(r.Refusals) > 0 }

// PhaseOf returns the name of the phase that an object is in, or "".
func (r *Revision) PhaseOf(key objects.Key) string {
	if d, phase := r.Find(key); d != nil {
		return r.Phases[phase].Name
	}
	return ""
}

// CarryOver copies the knowledge of this process about the revision as it was loaded before, as far
// as its set does not record it.
func (r *Revision) CarryOver(before *Revision) {
	r.Revision.CarryOver(&before.Revision)
	r.ClaimedAtCreation = before.ClaimedAtCreation
	if before.Unauthorized != nil && r.Blocked() == "" {
		r.Unauthorized = before.Unauthorized
		r.Block(before.Blocked())
	}
	r.fieldGenerations, r.recheck, r.looks, r.progressed = before.fieldGenerations, before.recheck, before.looks, before.progressed
	r.cachedResults, r.cost, r.graces, r.ready = before.cachedResults, before.cost, before.graces, before.ready
}

// RestoreReady restores which phases were ready when this process started.
func (r *Revision) RestoreReady(phases []bool) { r.ready = phases }
