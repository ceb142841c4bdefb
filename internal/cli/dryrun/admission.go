package dryrun

import (
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
)

// denier returns the policy or webhook of the package itself that denies a write, by the
// error message. mu is held.
func (w *world) denier(message string) (objects.Key, *object) {
	denial, denied := apply.DeniedBy(message)
	if !denied {
		return objects.Key{}, nil
	}
	for _, kind := range denial.Kinds() {
		for _, key := range sortedKeys(w.objects) {
			o := w.objects[key]
			if key.Kind == kind && o.live != nil && o.now != nil && w.controls(o) && denial.Is(key, o.live) {
				return key, o
			}
		}
	}
	return objects.Key{}, nil
}

// controls reports whether the package controls an object.
func (w *world) controls(o *object) bool {
	ref := o.observed.Controller()
	if ref == nil {
		return false
	}
	_, sibling := w.rollout.Siblings[ref.UID]
	return sibling || w.rollout.Owner.Is(ref)
}

// deniedByStale reports whether a dry run was denied by a policy or webhook that the
// rollout changes before the write, so that it is not conclusive.
func (w *world) deniedByStale(err error) (why string, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, o := w.denier(err.Error())
	if o == nil || len(o.done) == 0 {
		return "", false
	}
	return "it is refused by " + key.Kind + " " + key.Name + ", which the package changes before", true
}

// obstacle is the policy or webhook of the package itself that denies a write which has
// to precede its deletion or update. mu is held.
func (s *simulation) obstacle(message string) *Obstacle {
	key, o := s.denier(message)
	if o == nil {
		return nil
	}
	if d, _ := s.next.Find(key); d != nil && s.had(d) {
		return nil // it stays as it is, and would be put back
	}
	return &Obstacle{Group: key.Group, Kind: key.Kind, Name: key.Name, Remedy: apply.Remedy(key)}
}
