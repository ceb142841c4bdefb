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
	"lockstep.run/lockstep/internal/phases"
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
			c, changed := s.objects[d.Key].change(d.Key)
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
	now := s.objects[d.Key].now
	return s.state.Jobs[d.Key].Succeeded(d) && (now == nil || now.GetDeletionTimestamp() != nil)
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

// had reports whether the newest older revision has an object with the same content,
// so that a difference is of others.
func (s *simulation) had(d *objects.Desired) bool {
	for _, rev := range slices.Backward(s.rollout.Revisions()) {
		if old, _ := rev.Find(d.Key); old != nil && old != d {
			return old.Content == d.Content
		}
	}
	return false
}

// cleanup returns what goes, in the order in which it went.
func (s *simulation) cleanup(seen map[objects.Key]bool) []Change {
	var gone []Change
	for _, key := range s.removed {
		if seen[key] {
			continue
		}
		if c, changed := s.objects[key].change(key); changed {
			gone = append(gone, c)
		}
	}
	return gone
}

// change says what happened to an object; changed is false where nothing did.
func (o *object) change(key objects.Key) (c Change, changed bool) {
	c = changeOf(key, o.version)
	c.Reached = o.reached
	if o.live != nil && o.now != nil {
		c.Fields = Differences(o.live, o.now)
	}
	switch {
	case o.refusal != nil:
		c.Action, c.Message = ActionRefuse, o.refusal.Message
	case o.live == nil && o.now == nil:
		return c, false
	case o.did(phases.Release):
		c.Action, c.Fields = ActionRelease, nil
	case o.now == nil:
		c.Action = ActionDelete
	case o.live == nil, o.live.GetDeletionTimestamp() != nil && o.live.GetUID() != o.now.GetUID():
		c.Action, c.Fields = ActionCreate, nil
	default:
		c.Action, c.From = o.rewritten(len(c.Fields))
	}
	if o.now != nil && c.Action != ActionRelease && c.Action != ActionRelabel {
		c.Unverified = o.unverified
	}
	return c, c.Action != ""
}

// rewritten says what happened to an object that was there and is there, with so
// many fields that differ; and from whom it was taken over.
func (o *object) rewritten(fields int) (action Action, from string) {
	switch {
	case o.did(phases.Recreate):
		return ActionReplace, ""
	case o.did(phases.Adopt) && o.foreign != "":
		return ActionTakeOver, o.foreign
	case fields > 0 && !o.did(phases.Change, phases.Adopt) && o.did(phases.Correct):
		return ActionCorrect, ""
	case fields > 0:
		return ActionChange, ""
	case len(o.done) > 0 && !maps.Equal(objects.WellKnown(o.live.GetLabels()), objects.WellKnown(o.now.GetLabels())):
		return ActionRelabel, ""
	}
	return "", ""
}

// did reports whether one of the actions was among the steps.
func (o *object) did(actions ...phases.Action) bool {
	return slices.ContainsFunc(o.done, func(a phases.Action) bool { return slices.Contains(actions, a) })
}

// judge adds what an upgrade means beyond its fields.
func (in *input) judge(ctx context.Context, s *simulation, plan *Plan) (err error) {
	plan.Losses = s.losses(ctx)
	plan.Powers, err = s.powers(ctx)
	return err
}
