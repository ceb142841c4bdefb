package engine

import (
	"cmp"
	"context"
	"sync/atomic"

	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/phases"
)

// perform performs steps in parallel, fair between owners, and records their results in the memory
// of the rollout. A refusal of one step does not stop the others; it is in the object's record. If
// perform returns an error, the caller has to give up: the context ended, or this process does not
// lead.
func (e *Engine) perform(ctx context.Context, r *Rollout, steps []phases.Step, background bool) error {
	run := &run{Engine: e, rollout: r, absent: e.absent(ctx, steps)}
	return e.each(ctx, r, background, len(steps), func(i int) error { return run.do(ctx, steps[i]) })
}

// each performs do(0) to do(n-1) in parallel, fair between owners, and starts no more of them after
// an error. It returns that error, or the error of the context.
func (e *Engine) each(ctx context.Context, r *Rollout, background bool, n int, do func(int) error) error {
	var failed atomic.Pointer[error]
	e.Pool.Run(ctx, r.Owner.OwnerKey, background, n, func(i int) {
		if failed.Load() != nil {
			return
		}
		if err := do(i); err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	})
	return cmp.Or(ptr.Deref(failed.Load(), nil), ctx.Err())
}

func (x *run) do(ctx context.Context, s phases.Step) error {
	defer x.catch(ctx, s)
	version := ""
	if s.Desired != nil {
		version = s.Desired.Version
	}

	mapping, err := x.Cluster.Mapping(s.Key.GroupKind(), version)
	if err != nil {
		x.fail(s, err, false)
		return nil
	}

	custom := x.Cluster.State(s.Key.GroupKind()).Custom
	one := &step{Step: s, run: x, mapping: mapping, custom: custom, applied: custom || x.rollout.single}
	err = one.do(ctx)
	if err == nil {
		one.count(false)
		return nil
	}

	// Neither is a fault of the object, so there is no failure to record.
	if ctx.Err() != nil || apply.Classify(err) == apply.NotLeading {
		return err
	}

	one.count(true)
	return one.recover(ctx, err)
}

// count counts a step that writes.
func (s *step) count(failed bool) {
	switch s.Action {
	case phases.Create, phases.Change, phases.Adopt, phases.Correct, phases.Relabel, phases.Recreate, phases.Delete, phases.Release, phases.Retain:
		s.run.Happened(Event{Kind: Write, Action: s.Action, Failed: failed})
	}
}

func (s *step) do(ctx context.Context) error {
	switch s.Action {
	case phases.Create, phases.Adopt:
		return s.write(ctx, s.again())
	case phases.Change, phases.Relabel:
		return s.write(ctx, false)
	case phases.Correct:
		return s.write(ctx, true)
	case phases.Verify:
		return s.verify(ctx)
	case phases.Delete, phases.Recreate:
		return s.delete(ctx)
	case phases.Release:
		return s.release(ctx)
	case phases.Retain:
		return s.retain(ctx)
	case phases.Confirm:
		if s.run.absent[s.Key] {
			s.forget()
			return nil
		}
		_, err := s.read(ctx)
		return err
	}

	return nil
}
