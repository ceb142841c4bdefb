package objectdeployments

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/scenario"
)

// The checks in this file run inside of the request that they are about, on the
// true state of the cluster.

// failed ends the effect of a request; see checked.
type failed struct{}

// failf ends the run. Inside of the engine's pass the failure is kept until the pass is left:
// rapid distinguishes failures by their stack, and behind iter.Pull they all look alike.
func (s *simulation) failf(format string, args ...any) {
	if s.inside {
		if s.failure == "" {
			s.failure = fmt.Sprintf(format, args...)
		}
		panic(failed{})
	}
	for _, line := range s.log {
		s.t.Log(line)
	}
	if r := s.engine.rollout(); r != nil {
		state, _ := r.Snapshot(s.engine.cluster, s.engine.tracker().Strays(r.Owner.OwnerKey), s.now, func(*phases.State) {})
		s.t.Log("a scenario for internal/phases/testdata:\n" + scenario.Format(state))
	}
	s.t.Fatalf(format, args...)
}

// active returns the newest revision that is not removed, as the engine loaded
// it, or nil.
func (s *simulation) active() *engine.Revision {
	for _, r := range slices.Backward(s.engine.revisions()) {
		if !r.Removing() {
			return r
		}
	}
	return nil
}

// stays reports whether a revision that has to be kept contains the object.
func (s *simulation) stays(key objects.Key) bool {
	active, succeeded := s.active(), false
	for _, r := range slices.Backward(s.engine.revisions()) {
		proved := slices.ContainsFunc(s.sets, func(one *set) bool { return one.uid == r.UID && one.proved })
		obsolete := r.Removing() || succeeded || r != active && r.Opened() == 0 && !proved
		if !obsolete && r.Contains(key) {
			return true
		}
		succeeded = succeeded || r.Succeeded() && !r.Removing()
	}
	return false
}

// checkApply checks invariants 1 and 3: the object is written as the newest
// revision wants it that durably opened the object's phase.
func (s *simulation) checkApply(key objects.Key, before, after *object) {
	defer func() { s.engineMade[after.uid] = true }()
	if s.late {
		return
	}
	if before != nil && before.terminating {
		s.failf("%s is terminating and was written", key)
	}
	writer := s.writerOf(key)
	switch {
	case writer == nil:
		s.failf("%s was written, and no revision has opened its phase", key)
	case writer.waiting:
		s.failf("%s was written for %s, which awaits its activation", key, writer.name)
	case !writer.claimed:
		s.failf("%s was written for %s, which has no claim", key, writer.name)
	case s.engine.loaded(writer.uid).Paused():
		s.failf("%s was written for %s, which is paused", key, writer.name)
	}
	w, ph := writer.template.Find(key)
	if ph >= writer.opened {
		s.failf("%s was written for %s, which has not recorded that it opened its phase", key, writer.name)
	}
	s.checkOrder(writer, key, ph)
	if before != nil && (before.controller() != s.owner || !s.remembered(key, before)) {
		s.loose[after.uid] = true // content from elsewhere, or from a revision that no longer exists, can stay
	}
	if !s.shows(after, w) {
		s.failf("%s was written as %s, and its writer %s wants %s", key, after.value, writer.name, w.value)
	}
	if before == nil {
		return
	}
	if before.controller() == s.owner {
		// A restart, or the deletion of a set, loses the record of the labels.
		known := s.knows(writer, key, before) && !s.lateMade[before.uid] && !s.setDeleted && !s.returned[before.uid]
		if before.value == after.value && before.labelled && before.release != after.release && !writer.succeeded && known {
			s.failf("%s was written for its labels alone before %s has succeeded", key, writer.name)
		}
		return
	}
	adoptable := before.adoptable && !s.remote
	switch {
	case before.controller() == rivalUID && w.collision != corev1alpha1.CollisionProtectionNone,
		before.controller() == "" && w.collision == corev1alpha1.CollisionProtectionPrevent && !adoptable && !s.belonged(key, before):
		s.failf("%s was taken over: %s", key, before)
	}
}

// belonged reports whether the deployment has written an object, or was named in its references,
// which count without a write. The engine puts a lost reference back as long as it remembers it:
// until it is restarted.
func (s *simulation) belonged(key objects.Key, o *object) bool {
	return s.engineMade[o.uid] || !s.remote && s.was(key, s.engine.since, func(was *object) bool { return was != nil && was.uid == o.uid && s.ours(was) })
}

// foreign reports whether an object that names the deployment was never written by it: a backup
// brought it back without managedFields.
func (s *simulation) foreign(o *object) bool { return s.returned[o.uid] && !s.engineMade[o.uid] }

// remembered reports whether an existing revision has the content of an object: the remains of an
// archived or deleted revision cannot be distinguished from defaults.
func (s *simulation) remembered(key objects.Key, o *object) bool {
	return slices.ContainsFunc(s.sets, func(one *set) bool {
		w, _ := one.template.Find(key)
		return w != nil && !one.archived && w.value == o.value
	})
}

// knows reports whether the engine knows that an object has the content of a revision.
func (s *simulation) knows(writer *set, key objects.Key, o *object) bool {
	d, _ := s.engine.loaded(writer.uid).Find(key)
	return d != nil && s.engine.rollout().Wrote(key, o.uid, d.Content)
}

// checkOrder checks the order of creation in invariant 1: before an object is written, all objects
// of the earlier phases matched the revision once, regardless of crashes in between. Opening a gate
// checks that the earlier phases were ready.
func (s *simulation) checkOrder(writer *set, key objects.Key, phase int) {
	for ph := range phase {
		for i := range writer.template.phases[ph] {
			if w := &writer.template.phases[ph][i]; !s.wasThere(writer, w) {
				s.failf("%s was written for %s, and %s of phase %d never was before", key, writer.name, w.key, ph+1)
			}
		}
	}
}

// wasThere reports whether an object was as a revision wants it, at any time that the
// engine knew of when it made the revision, or later.
func (s *simulation) wasThere(set *set, w *wanted) bool {
	return s.was(w.key, set.since[w.key.GroupKind()], func(o *object) bool {
		return o != nil && s.ours(o) && visible(w.value, o.value)
	})
}

// checkDelete checks invariants 2 and 6.
func (s *simulation) checkDelete(key objects.Key, before *object) {
	if s.late {
		return
	}
	if s.recreates(key, before) {
		return
	}
	s.checkRemoval(key, before)
	if before.keep {
		s.failf("%s is to be kept and was deleted", key)
	}
	if s.orphaned[before.uid] && s.engine.tearing {
		s.failf("%s was deleted, and the deployment was deleted with its objects kept", key)
	}
	if s.moved {
		return
	}
	for _, r := range s.engine.revisions() {
		at := phaseOf(r, key)
		if at < 0 {
			continue
		}
		for ph := at + 1; ph < len(r.Phases); ph++ {
			for _, d := range r.Phases[ph].Objects {
				if s.leaves(d.Key) {
					s.failf("%s was deleted before %s of a later phase of %s", key, d.Key, r.Name)
				}
			}
		}
	}
}

// recreates reports whether the object is ours, not to be kept, and has to be deleted
// for the revision that writes it, because a part of it cannot be changed.
func (s *simulation) recreates(key objects.Key, before *object) bool {
	if before.fixed == "" || before.keep || !s.ours(before) || s.engine.tearing {
		return false
	}
	writer := s.writerOf(key)
	if writer == nil {
		return false
	}
	w, _ := writer.template.Find(key)
	// While it was not labelled as ours, admit allowed changes to that part: the engine might know
	// its former state.
	changed := w.fixed() != before.fixed || s.stripped[before.uid]
	return changed && writer.claimed && !s.engine.loaded(writer.uid).Paused()
}

// writerOf returns the newest revision that opened the phase of an object, as far as the engine
// knows: the answer to the write that records it might have been lost.
func (s *simulation) writerOf(key objects.Key) *set {
	for _, set := range slices.Backward(s.sets) {
		rev := s.engine.loaded(set.uid)
		w, ph := set.template.Find(key)
		if w != nil && rev != nil && !rev.Removing() && !set.archived && rev.Claimed() && ph < rev.Opened() {
			return set
		}
	}
	return nil
}

func (s *simulation) checkRelease(key objects.Key, before *object) {
	if !s.late && s.ours(before) { // else only our label is removed
		s.checkRemoval(key, before)
	}
}

func (s *simulation) checkRemoval(key objects.Key, before *object) {
	if !s.ours(before) && !s.retained(key, before) {
		s.failf("%s is not ours and was removed: %s", key, before)
	}
	if s.engine.tearing {
		return
	}
	if active := s.active(); before.controller() != s.owner && !s.engine.contains(key) && (active == nil || !active.Succeeded()) {
		s.failf("%s is of a revision from before a restoration, and was removed before the active one has succeeded", key)
	}
	if s.stays(key) {
		s.failf("%s was removed, and a revision that stays contains it", key)
	}
	if s.held(key) {
		s.failf("%s was removed while the active revision is paused", key)
	}
}

// retained reports whether an object has no controller, and a revision that is being removed or the
// deployment has it on record.
func (s *simulation) retained(key objects.Key, o *object) bool {
	return o.controller() == "" && slices.ContainsFunc(s.engine.revisions(), func(r *engine.Revision) bool {
		has := slices.ContainsFunc(o.owners, func(ref objects.Reference) bool { return ref.UID == r.UID })
		return has && r.Retains.Has(key) && (r.Removing() || s.engine.tearing || !s.retain)
	})
}

// held reports whether a paused active revision keeps obsolete objects, or a paused deployment
// without one keeps all of them for the next.
func (s *simulation) held(key objects.Key) bool {
	active := s.active()
	if active == nil && (s.engine.reconciled.Spec.Paused || s.engine.reconciled.Spec.RevisionActivationPolicy == corev1alpha1.RevisionActivationManual) {
		return true
	}
	return active != nil && active.Paused() && (!s.engine.contains(key) ||
		slices.ContainsFunc(s.engine.revisions(), func(r *engine.Revision) bool { return !r.Removing() && r.Contains(key) }))
}

// leaves reports whether the object is ours, present, and to be removed.
func (s *simulation) leaves(key objects.Key) bool {
	o := s.get(key)
	if o == nil || !s.ours(o) || o.keep || s.lateMade[o.uid] || s.stripped[o.uid] || s.returned[o.uid] {
		return false
	}
	return s.engine.tearing || !s.stays(key) && !s.held(key)
}

func phaseOf(r *engine.Revision, key objects.Key) int {
	for ph, d := range r.Objects() {
		if d.Key == key {
			return ph
		}
	}
	return -1
}

// proof is the resource version at which each kind was seen.
type proof map[schema.GroupKind]int64

// watchProof is the moment that each watch showed when phases up to the last one were opened, or a
// later one at which the same was proven.
func (s *simulation) watchProof(set *set, last int) proof {
	p := proof{}
	for ph := range last {
		for _, w := range set.template.phases[ph] {
			if gk := w.key.GroupKind(); !probed(w.key) {
			} else if s.engine.confirmed > 0 {
				p[gk] = s.engine.confirmed
			} else if p[gk] = s.engine.known[gk]; p[gk] < set.made {
				p[gk] = max(p[gk], set.proven)
			}
		}
	}
	if len(p) > 1 && s.engine.confirmed == 0 {
		s.failf("the gate to phase %d of %s needs no proof for several kinds", last+1, set.name)
	}
	return p
}

// checkGate checks invariant 1: all probes of the phases before the last opened one were true at
// the moment of the proof, and the phases passed over matched the revision.
func (s *simulation) checkGate(set *set, first, last int, at proof) {
	if !set.claimed {
		s.failf("phases %d to %d of %s were opened without a claim", first+1, last+1, set.name)
	}
	if active := s.active(); active == nil || active.UID != set.uid {
		s.failf("a phase of %s was opened, which is not the active revision", set.name)
	}
	for ph := range last {
		for i := range set.template.phases[ph] {
			w := &set.template.phases[ph][i]
			if ph >= first && !s.wasThere(set, w) {
				s.failf("phase %d of %s was passed over, and %s never was as it should be", ph+1, set.name, w.key)
			}
			if !probed(w.key) {
				continue
			}
			if at[w.key.GroupKind()] < set.made {
				s.failf("phase %d of %s was opened by what %s of phase %d was before that revision", last+1, set.name, w.key, ph+1)
			}
			o := s.at(w.key, at[w.key.GroupKind()])
			if o == nil || !o.healthy || !s.shows(o, w) || o.controller() != s.owner {
				s.failf("phase %d of %s was opened, and %s of phase %d was: %s", last+1, set.name, w.key, ph+1, o)
			}
		}
	}
}

// checkArchived checks invariant 6: an archived revision owns nothing.
func (s *simulation) checkArchived(set *set) {
	if set.waited {
		return
	}
	for _, ph := range set.template.phases {
		for _, w := range ph {
			o := s.get(w.key)
			if o == nil || !s.ours(o) || s.lateMade[o.uid] || s.returned[o.uid] {
				continue
			}
			other := slices.ContainsFunc(s.engine.revisions(), func(r *engine.Revision) bool { return r.UID != set.uid && r.Contains(w.key) })
			if !other {
				s.failf("%s was archived and still owns %s: %s", set.name, w.key, o)
			}
		}
	}
}

// checkOvertaken checks that a revision that is archived before a newer one has succeeded holds
// nothing: the newest one has all of its objects, and has opened the phases of the objects that it
// might have written. Or it hands nothing over: it never succeeded, and the newest one has none of
// its objects.
func (s *simulation) checkOvertaken(set *set) {
	if set.waited {
		return
	}
	for _, other := range s.ever {
		if other.number >= set.number && other.succeeded {
			return
		}
	}
	for _, other := range s.sets {
		if other.number > set.number && other.deleting {
			return // a user deletes it, which the engine may not have seen yet
		}
	}
	newest := s.newest()
	if newest == nil || set.begun < 2 && !set.proved { // the first phase can have been opened without a write
		return
	}
	if !set.proved && apart(set.template, newest.template) {
		return
	}
	rev := s.engine.loaded(newest.uid)
	for ph, all := range set.template.phases {
		for _, w := range all {
			own, at := newest.template.Find(w.key)
			if own == nil || ph < set.begun && rev != nil && at >= rev.Opened() {
				s.failf("%s was archived, and %s has not taken %s over", set.name, newest.name, w.key)
			}
		}
	}
}

// apart reports whether two templates have no object in common.
func apart(a, b *template) bool {
	return !slices.ContainsFunc(slices.Concat(a.phases...), func(w wanted) bool { common, _ := b.Find(w.key); return common != nil })
}

// shows reports whether an object is as wanted. Once a user has deleted a set, no record
// is left that a field was in its template.
func (s *simulation) shows(o *object, w *wanted) bool {
	return o.value == w.value || (s.setDeleted || s.loose[o.uid]) && visible(w.value, o.value)
}

// checkHeld checks that each object matches its writer's template, also while the newest revision
// does not progress. If a revision was overtaken, its unfinished objects can match its own
// template, or still an older one's.
func (s *simulation) checkHeld() {
	for _, key := range universe {
		var wants []*wanted
		for _, set := range slices.Backward(s.sets) {
			w, ph := set.template.Find(key)
			if set.archived || set.deleting || set.lifecycleArchived {
				continue
			}
			if w == nil || ph >= set.opened {
				if set.succeeded {
					break // older ones own nothing
				}
				continue
			}
			wants = append(wants, w)
			if ph >= set.ready && set != s.newest() {
				continue
			}
			o := s.get(key)
			if o == nil || !slices.ContainsFunc(wants, func(w *wanted) bool { return s.shows(o, w) }) || !o.labelled || o.controller() != s.owner {
				s.failf("%s of %s should be %v and is %s", key, set.name, wants, o)
			}
			break
		}
	}
}

// checkConverged checks invariants 4 and 6 once no work is left: the end is the same as without any
// fault.
func (s *simulation) checkConverged() {
	if s.deleting {
		s.checkDeleted()
		return
	}
	d := s.deployment()
	s.checkHeld()
	active := s.newest()
	if s.stuck && active != nil && !active.succeeded {
		return
	}
	if active == nil || active.template != s.templateOf(&d.Spec.Template.Spec) || active.release != d.Labels[corev1alpha1.PackageInstanceLabel] || !active.succeeded {
		s.failf("the newest revision is not the template's, or did not succeed: %+v", active)
	}
	for _, key := range s.controlled() {
		if w, _ := active.template.Find(key); w == nil && !s.foreign(s.get(key)) && !s.hidden(key, s.get(key), s.kindsInUse()) {
			s.failf("%s is left of an older revision: %s", key, s.get(key))
		}
	}
	for _, ph := range active.template.phases {
		for _, w := range ph {
			o := s.get(w.key)
			if o == nil || !s.shows(o, &w) || o.release != active.release || !o.labelled || o.controller() != s.owner {
				s.failf("%s should be %s/%s and is %s", w.key, w.value, active.release, o)
			}
		}
	}
	archived := 0
	for _, set := range s.sets {
		if set != active && !set.archived {
			s.failf("%s is not archived", set.name)
		}
		if set.archived {
			archived++
		}
	}
	if archived > 2 {
		s.failf("%d archived revisions are kept", archived)
	}
}

// checkDeleted checks that nothing is left of a deleted deployment, or that its orphaned objects
// keep neither reference nor label of ours. An object that a backup restored without managedFields
// is excused: once the garbage collector has removed the reference, nothing distinguishes it from
// an object of another client with our label.
func (s *simulation) checkDeleted() {
	if s.deployment() != nil {
		s.failf("the deployment still exists")
	}
	for _, key := range s.keys() {
		o := s.get(key)
		if s.kept || s.lateMade[o.uid] || s.foreign(o) || s.hidden(key, o, s.inUse) {
			continue
		}
		// Objects made before the engine knew of an orphaning delete are left to the garbage
		// collector.
		if s.ours(o) && (s.orphaned == nil || s.orphaned[o.uid]) {
			s.failf("%s is left of the deployment: %s", key, o)
		}
		if s.orphaned[o.uid] && !s.lateSet && o.labelled && o.controller() != rivalUID {
			s.failf("%s keeps our label: %s", key, o)
		}
	}
}
