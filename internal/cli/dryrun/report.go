package dryrun

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/drift"
)

// report adds the phases and the cleanup to a plan. Fields with values of Secrets are hidden.
func (in *input) report(s *simulation, plan *Plan) {
	seen := map[objects.Key]bool{}
	sensitive := in.sensitive()
	now := s.current()
	for i, ph := range s.next.Phases {
		// An earlier phase, or the package as a whole, might have a refusal.
		refused := slices.ContainsFunc(s.refusals, func(r Refusal) bool {
			return r.Phase == "" || slices.ContainsFunc(s.next.Phases[:i], func(ph phases.Phase) bool { return ph.Name == r.Phase })
		})
		phase := Phase{Name: ph.Name, Reached: s.reached || !refused}
		// An ObjectSetPhase is named after the set that the controller has created.
		if now != nil && ph.Delegates() {
			ph = now.Phases[i]
		}
		for _, d := range ph.Objects {
			seen[d.Key] = true
			c, changed := s.change(d.Key)
			c.Class = d.Class()
			// The same content as in the installed revision means that another client has changed
			// the object.
			if old := s.has(d.Key); c.Action == ActionChange && old != nil && old.Content == d.Content {
				c.Action = ActionCorrect
			}

			if !changed {
				phase.Unchanged++
				continue
			}
			if sensitive[d.Key] {
				hide(c.Fields)
			}

			phase.Changes = append(phase.Changes, c)
		}

		plan.Phases = append(plan.Phases, phase)
	}

	plan.Cleanup = s.cleanup(seen)
}

// sensitive returns the objects that have values of Secrets, even if they belong to installed
// revisions.
func (in *input) sensitive() map[objects.Key]bool {
	found := map[objects.Key]bool{}
	note := func(o corev1alpha1.ObjectSetObject) {
		var value map[string]any
		if json.Unmarshal(o.Object.Raw, &value) == nil {
			// The template can omit the namespace, so both keys are noted.
			found[objectdiff.KeyOf(value, "")], found[objectdiff.KeyOf(value, in.Namespace)] = true, true
		}
	}

	for _, sealed := range in.stored.Secrets {
		for _, o := range sealed {
			note(o)
		}
	}

	for i := range in.Template.Phases {
		for j, o := range in.Template.Phases[i].Objects {
			if in.Sensitive != nil && in.Sensitive(i, j) {
				note(o)
			}
		}
	}

	return found
}

// hide replaces all values by a placeholder. It keeps the difference between a set and an absent
// value.
func hide(fields []Field) {
	for i := range fields {
		if fields[i].Before != nil {
			fields[i].Before = objectdiff.Hidden
		}
		if fields[i].After != nil {
			fields[i].After = objectdiff.Hidden
		}
	}
}

// has returns an object in the newest installed revision that has started to write it, or nil.
func (s *simulation) has(key objects.Key) *objects.Desired {
	for _, rev := range slices.Backward(s.installed) {
		if d, ph := rev.Find(key); d != nil && ph < rev.Started() {
			return d
		}
	}
	return nil
}

// cleanup returns the changes of removed objects that no phase of the new revision has.
func (s *simulation) cleanup(seen map[objects.Key]bool) []Change {
	var gone []Change
	for _, key := range s.removed {
		if seen[key] {
			continue
		}
		if c, changed := s.change(key); changed {
			gone = append(gone, c)
		}
	}
	return gone
}

// change returns the change of an object, and false if it stays as it was.
func (s *simulation) change(key objects.Key) (c Change, changed bool) {
	o := s.object(key)
	c = Change{ID: objectdiff.IDOf(key), Reached: o.reached}
	c.Version = o.version
	if o.live != nil && o.now != nil {
		c.Fields = Differences(o.live, o.now)
	}

	switch {
	case o.refusal != nil:
		// A refused object has the fields that the engine would have written.
		c.Action, c.Message = ActionRefuse, o.refusal.Message
	case o.released:
		c.Action, c.Fields, c.Message = ActionRelease, nil, s.rollout.Spared(key)
	case o.live == nil && o.now == nil:
		return c, false
	case o.now == nil:
		c.Action = ActionDelete
	// An object that is being deleted already is created again, not replaced by the engine.
	case o.live == nil, o.live.GetDeletionTimestamp() != nil && o.live.GetUID() != o.now.GetUID():
		c.Action, c.Fields = ActionCreate, nil
	default:
		c.Action, c.From = s.rewritten(key, o, len(c.Fields))
		c.Message = s.rollout.Noted(key)
	}

	if o.now != nil && c.Action != ActionRelease && c.Action != ActionRelabel {
		c.Unverified = o.unverified
	}
	return c, c.Action != ""
}

// rewritten returns the action for an object that exists before and after, and its former owner.
// The action is empty for an unchanged object.
func (s *simulation) rewritten(key objects.Key, o *object, changes int) (action Action, from string) {
	if o.live.GetUID() != o.now.GetUID() {
		return ActionReplace, ""
	}
	// An object without a controller is not taken over if the installed revision wrote it. It did not
	// if it came upon an object of another client.
	fields := o.live.GetManagedFields()
	wrote := s.has(key) != nil && (drift.HasUpdates(apinames.Default, fields) || drift.HasApply(apinames.Default, fields))
	if from = s.formerOwner(o); from != "" && (from != noController || !wrote) {
		return ActionTakeOver, from
	}

	switch {
	case changes > 0:
		return ActionChange, ""
	case o.changed && !maps.Equal(apinames.Default.Inherited(o.live.GetLabels()), apinames.Default.Inherited(o.now.GetLabels())):
		return ActionRelabel, ""
	}
	return "", ""
}

// Differences returns the fields that differ, with their current managers, except for fields that
// the API server and the engine maintain. Values of Secrets are hidden.
func Differences(before, after *unstructured.Unstructured) []Field {
	var fields []Field
	others := objectdiff.ManagersOf(before, corev1alpha1.LegacyFieldManagers()...)
	types := drift.LearnListTypes(slices.Concat(before.GetManagedFields(), after.GetManagedFields()))
	for _, c := range objectdiff.Fields(withoutBookkeeping(before), withoutBookkeeping(after), types.Keys) {
		fields = append(fields, Field{c, others.Of(c.Path)})
	}
	return fields
}

// withoutBookkeeping returns a shallow copy of an object without its status, and without the
// metadata that the API server or the engine maintains.
func withoutBookkeeping(u *unstructured.Unstructured) map[string]any {
	obj := maps.Clone(u.Object)
	delete(obj, "status")
	meta, _ := obj["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	for _, field := range []string{
		"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink",
		"ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds",
	} {
		delete(meta, field)
	}

	without(meta, "labels", corev1alpha1.CacheLabel, corev1alpha1.PackageLabel, corev1alpha1.PackageInstanceLabel,
		corev1alpha1.PackageVersionLabel, corev1alpha1.PackageProviderLabel)
	without(meta, "annotations", corev1alpha1.RevisionAnnotation, corev1alpha1.OwnersAnnotation, corev1alpha1.AdoptableByAnnotation)
	obj["metadata"] = meta
	return obj
}

// without deletes keys of a map of metadata, and the map itself once it is empty. It copies the map
// first, because the object shares it.
func without(meta map[string]any, field string, keys ...string) {
	values, _ := meta[field].(map[string]any)
	values = maps.Clone(values)
	for _, key := range keys {
		delete(values, key)
	}
	// The API server omits an empty map, so it must not count as a difference.
	if len(values) == 0 {
		delete(meta, field)
		return
	}
	meta[field] = values
}
