package dryrun

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
)

// report fills the plan with what happened in a simulation.
func (in *input) report(s *simulation, plan *Plan) {
	seen := map[objects.Key]bool{}
	sensitive := in.sensitive()
	for i := range s.next.Phases {
		phase := Phase{Name: s.next.Phases[i].Name, Reached: s.reached || s.reaches(i)}
		for _, d := range s.next.Phases[i].Objects {
			seen[d.Key] = true
			if s.ranBefore(d) {
				phase.Completed = append(phase.Completed, d.Key.String())
			}
			c, changed := s.change(d.Key)
			if c.Action == ActionChange && s.had(d) {
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

// ranBefore reports whether an object is a Job that is gone after it ran to success,
// and does not run again.
func (s *simulation) ranBefore(d *objects.Desired) bool {
	now := s.object(d.Key).now
	return s.jobs[d.Key].Succeeded(d) && (now == nil || now.GetDeletionTimestamp() != nil)
}

// sensitive returns the objects whose values are not shown: those that hold values
// of Secrets, or did in a revision that is installed.
func (in *input) sensitive() map[objects.Key]bool {
	found := map[objects.Key]bool{}
	note := func(o corev1alpha1.ObjectSetObject) {
		u := &unstructured.Unstructured{}
		if json.Unmarshal(o.Object.Raw, &u.Object) != nil {
			return
		}
		gvk := u.GroupVersionKind()
		key := objects.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
		found[key] = true
		key.Namespace = cmp.Or(key.Namespace, in.Namespace)
		found[key] = true
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

// hide takes values out of fields.
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

// reaches reports whether the engine gets to a phase although it would stop
// somewhere: to all phases up to the first one with a refusal.
func (s *simulation) reaches(phase int) bool {
	for _, r := range s.refusals {
		if r.Phase == "" {
			return false
		}
	}
	for i := range phase {
		name := s.next.Phases[i].Name
		if slices.ContainsFunc(s.refusals, func(r Refusal) bool { return r.Phase == name }) {
			return false
		}
	}
	return true
}

// had reports whether the newest present revision with an object, apart from a new one,
// has it with the same content, so that a difference is of others.
func (s *simulation) had(d *objects.Desired) bool {
	old := s.has(d.Key)
	return old != nil && old.Content == d.Content
}

// has returns an object in the newest present revision that has begun to write it, or nil.
func (s *simulation) has(key objects.Key) *objects.Desired {
	for _, rev := range slices.Backward(s.installed) {
		if d, ph := rev.Find(key); d != nil && ph < rev.Begun() {
			return d
		}
	}
	return nil
}

// cleanup returns what goes, in the order in which it went.
func (s *simulation) cleanup(seen map[objects.Key]bool) []Change {
	var gone []Change
	for _, key := range s.removedKeys() {
		if seen[key] {
			continue
		}
		if c, changed := s.change(key); changed {
			gone = append(gone, c)
		}
	}
	return gone
}

// change says what happened to an object; changed is false where nothing did.
func (s *simulation) change(key objects.Key) (c Change, changed bool) {
	o := s.object(key)
	c = changeOf(key, o.version)
	c.Reached = o.reached
	if o.live != nil && o.now != nil {
		c.Fields = Differences(o.live, o.now)
	}
	switch {
	case o.refusal != nil:
		c.Action, c.Message = ActionRefuse, o.refusal.Message
	case o.released:
		c.Action, c.Fields = ActionRelease, nil
	case o.live == nil && o.now == nil:
		return c, false
	case o.now == nil:
		c.Action = ActionDelete
	case o.live == nil, o.live.GetDeletionTimestamp() != nil && o.live.GetUID() != o.now.GetUID():
		c.Action, c.Fields = ActionCreate, nil
	default:
		c.Action, c.From = s.rewritten(key, o, len(c.Fields))
	}
	if o.now != nil && c.Action != ActionRelease && c.Action != ActionRelabel {
		c.Unverified = o.unverified
	}
	return c, c.Action != ""
}

// rewritten says what happened to an object that was there and is there, with so
// many fields that differ; and from which owner it was taken over.
func (s *simulation) rewritten(key objects.Key, o *object, fields int) (action Action, from string) {
	if o.live.GetUID() != o.now.GetUID() {
		return ActionReplace, ""
	}
	if from = s.formerOwner(o); from != "" && (from != nobody || s.has(key) == nil) {
		return ActionTakeOver, from
	}
	switch {
	case fields > 0:
		return ActionChange, ""
	case o.changed && !maps.Equal(objects.WellKnown(o.live.GetLabels()), objects.WellKnown(o.now.GetLabels())):
		return ActionRelabel, ""
	}
	return "", ""
}

// judge adds what an upgrade means beyond its fields.
func (in *input) judge(ctx context.Context, s *simulation, plan *Plan) (err error) {
	plan.Losses = s.losses(ctx)
	plan.Powers, err = s.powers(ctx)
	return err
}
