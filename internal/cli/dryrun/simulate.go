package dryrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/schemas"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/rollout"
)

// simulation plays a rollout in a world, from the claim of the new revision to the
// end of its cleanup.
type simulation struct {
	*world
	state *phases.State
	next  *rollout.Revision
	// refusals are what stood in the way so far.
	refusals []Refusal
	// removed are the objects that went, in the order of the steps.
	removed []objects.Key
}

// run plays until nothing is left to do.
func (s *simulation) run(ctx context.Context) error {
	// Each pass performs a step, opens a phase or mends something.
	passes := 100
	for _, rev := range s.state.Revisions {
		passes += 10 * len(rev.Phases)
		for i := range rev.Phases {
			passes += 10 * len(rev.Phases[i].Objects)
		}
	}
	for range passes {
		again, err := s.pass(ctx)
		if err != nil || !again {
			return err
		}
	}
	return fmt.Errorf("the rollout does not come to an end in %d steps: please report this as a defect", passes)
}

// pass takes one step as the controller of deployments does (advance), and tells
// whether there may be another one.
func (s *simulation) pass(ctx context.Context) (bool, error) {
	plan := phases.Next(s.state)
	var urgent, background []phases.Step
	for _, step := range plan.Steps {
		if step.Background {
			background = append(background, step)
		} else {
			urgent = append(urgent, step)
		}
	}
	switch {
	case len(urgent) > 0:
		return true, s.performAll(ctx, urgent)
	case plan.Entry != nil:
		return true, s.enter(ctx, plan.Entry)
	case plan.Gate != nil:
		s.next.Open(plan.Gate.Last)
		return true, nil
	case s.succeeds(&plan):
		s.next.Succeeded = true
		return true, nil
	case len(background) > 0:
		return true, s.performAll(ctx, background)
	}
	return s.mend(&plan)
}

func (s *simulation) performAll(ctx context.Context, steps []phases.Step) error {
	err := parallel(ctx, len(steps), func(i int) error { return s.perform(ctx, steps[i]) })
	if err != nil {
		return err
	}
	for _, step := range steps {
		switch step.Action {
		case phases.Delete, phases.Recreate, phases.Release:
			s.removed = append(s.removed, step.Key)
		}
	}
	return nil
}

// succeeds reports whether the new revision has become available.
func (s *simulation) succeeds(plan *phases.Plan) bool {
	at := slices.Index(s.state.Revisions, &s.next.Revision)
	if at < 0 || s.next.Succeeded {
		return false
	}
	report := &plan.Reports[at]
	return report.Complete() && !report.InTransition()
}

// enter checks what a phase is entered with as a whole, and performs it where
// nothing of it is refused (rollout.Executor.Enter).
func (s *simulation) enter(ctx context.Context, entry *phases.Entry) error {
	if !entry.Revision.Phases[entry.Phase].Entered {
		ok, err := s.checkTypes(ctx, entry.Steps)
		if err != nil {
			return err
		}
		tried, err := s.tryChanges(ctx, entry.Steps)
		if err != nil || !ok || !tried {
			return err
		}
		entry.Revision.Phases[entry.Phase].Entered = true
	}
	return s.performAll(ctx, entry.Steps)
}

// checkTypes checks what is to be created against the schemas that are served.
func (s *simulation) checkTypes(ctx context.Context, steps []phases.Step) (bool, error) {
	var of []phases.Step
	var objs []*unstructured.Unstructured
	for _, step := range steps {
		if step.Action != phases.Create && step.Action != phases.Recreate || s.object(step.Key).mapping == nil {
			continue
		}
		template, err := step.Desired.Object(step.Stamp)
		if err != nil {
			return false, err
		}
		if why, err := s.defined.judge(ctx, step.Key.GroupKind().WithVersion(step.Desired.Version), template); why != "" || err != nil {
			continue // what is served now says nothing about it
		}
		of, objs = append(of, step), append(objs, &unstructured.Unstructured{Object: template})
	}
	ok := true
	for i, err := range s.Schemas.Check(ctx, objs) {
		if err == nil {
			continue
		}
		var unavailable *schemas.UnavailableError
		if errors.As(err, &unavailable) {
			return false, err
		}
		ok = false
		text, sensitive := s.rollout.Reduced(of[i].Key, err)
		if !sensitive {
			text = err.Error()
		}
		if err := s.fail(ctx, of[i], &Refused{text}, true); err != nil {
			return false, err
		}
	}
	return ok, nil
}

// tryChanges dry-runs what is to be changed.
func (s *simulation) tryChanges(ctx context.Context, steps []phases.Step) (bool, error) {
	var refused atomic.Bool
	err := parallel(ctx, len(steps), func(i int) error {
		if steps[i].Action == phases.Create || steps[i].Action == phases.Recreate {
			return nil
		}
		_, err := s.foresee(ctx, steps[i])
		if err == nil {
			return nil
		}
		refused.Store(true)
		return s.fail(ctx, steps[i], err, apply.Classify(err) == apply.Blocked)
	})
	return !refused.Load(), err
}

// mend notes what stands in the way and goes on as if it had been mended. It tells
// whether there was something.
func (s *simulation) mend(plan *phases.Plan) (bool, error) {
	mended := false
	for i := range plan.Reports {
		for _, b := range plan.Reports[i].Blocking {
			if err := s.mendOne(s.state.Revisions[i], b); err != nil {
				return false, err
			}
			mended = true
		}
	}
	return mended, nil
}

func (s *simulation) mendOne(of *phases.Revision, b phases.Blocker) error {
	o := s.object(b.Key)
	s.mu.Lock()
	failed := s.rollout.Memory.At(b.Key).Failure != nil
	passing := b.Kind == phases.BlockWait && o.observed != nil && o.observed.Terminating
	s.mu.Unlock()
	if passing {
		// It goes by itself, and the engine waits for that.
		s.mu.Lock()
		o.unverified = "it is being deleted; the engine waits until it is gone"
		o.now, o.observed = nil, nil
		*s.rollout.Memory.At(b.Key) = phases.Record{Gone: true}
		s.mu.Unlock()
		return nil
	}
	s.refuse(b)
	if failed {
		s.mu.Lock()
		s.rollout.Memory.At(b.Key).Failure = nil
		s.mu.Unlock()
	}
	d, _ := of.Find(b.Key)
	rev := s.rollout.Loaded(of.UID)
	if d == nil || rev == nil {
		s.remove(phases.Step{Action: phases.Confirm, Key: b.Key})
		return nil
	}
	return s.pretend(rev, d)
}

// refuse notes that the engine would stop at an object.
func (s *simulation) refuse(b phases.Blocker) {
	o := s.object(b.Key)
	r := Refusal{Phase: b.Phase, Group: b.Key.Group, Kind: b.Key.Kind, Namespace: b.Key.Namespace, Name: b.Key.Name, Message: b.Message}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Fields, r.Obstacle = o.immutable, s.obstacle(b.Message)
	o.refusal = &r
	s.reached, o.reached = false, false
	s.refusals = append(s.refusals, r)
}

// refusePackage notes that nothing of the package would be written.
func (s *simulation) refusePackage(key objects.Key, message string) {
	s.reached = false
	s.refusals = append(s.refusals, Refusal{Group: key.Group, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Message: message})
}
