package phases_test

import (
	"errors"
	"fmt"
	"time"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// exec performs one step as package rollout does.
type exec struct {
	*engine
	phases.Step
}

var errOwnerGoes = errors.New("its owner is being deleted")

func (e *engine) one(s phases.Step) {
	x := &exec{engine: e, Step: s}
	err := x.do()
	switch {
	case err == nil:
	case errors.Is(err, errConflict), errors.Is(err, errReplaced):
		obs, lookErr := x.read()
		if lookErr != nil {
			x.fail(lookErr, false)
		} else if s.Action == phases.Create && obs != nil {
			x.refuse(obs)
		}
	default:
		x.fail(err, false)
	}
}

func (x *exec) do() error {
	if x.c.unserved[x.Key.GroupKind()] {
		return errRetry
	}
	switch x.Action {
	case phases.Create, phases.Adopt:
		return x.write(x.memory.At(x.Key).Content == x.Desired.Content)
	case phases.Change, phases.Relabel:
		return x.write(false)
	case phases.Correct:
		if x.Live != nil && x.Live.Controller() == nil {
			alive := false
			err := x.request("ask for the deployment", func() error {
				alive = !x.c.deployment.deleting
				return nil
			})
			if err != nil {
				return err
			}
			if !alive {
				return errOwnerGoes
			}
		}
		return x.write(true)
	case phases.Verify:
		return x.verify()
	case phases.Delete, phases.Recreate:
		return x.delete()
	case phases.Release:
		return x.release()
	case phases.Confirm:
		_, err := x.read()
		return err
	}
	return fmt.Errorf("%s is no step", x.Action)
}

func (x *exec) guard() guard {
	if x.Live == nil {
		return guard{}
	}
	return guard{x.Live.UID, x.Live.ResourceVersion}
}

func (x *exec) apply(dryRun bool) (*thing, error) {
	w := &wanted{key: x.Key, value: string(x.Desired.Raw), keep: x.Desired.Keep, collision: x.Desired.Collision}
	release := x.Stamp.Labels["version"]
	what := fmt.Sprintf("apply %s=%s/%s (%s)", x.Key, w.value, release, x.Action)
	if dryRun {
		what = "dry run: " + what
	}
	var got *thing
	g := x.guard()
	write := func() (err error) {
		before := x.c.get(x.Key)
		if got, err = x.c.apply(x.Key, g, w, release, x.Stamp.Revision, dryRun); err == nil && !dryRun {
			x.checkApply(x.Step, before, got)
			x.wrote()
		}
		return err
	}
	if dryRun {
		err := x.request(what, write)
		return got, err
	}
	err := x.guarded(what, write)
	return got, err
}

// guarded sends a write that may still arrive after a crash.
func (x *exec) guarded(what string, write func() error) error {
	x.pending = write
	return x.request(what, func() error {
		x.pending = nil
		return write()
	})
}

func (x *exec) write(correction bool) error {
	id := x.follow(x.Desired, x.Stamp, x.Labels)
	x.memory.At(x.Key).Gone = false
	got, err := x.apply(false)
	if err != nil {
		if rec := x.memory.At(x.Key); !rec.Content.IsZero() && rec.Content != x.Desired.Content {
			rec.Content = objects.Digest{0xff}
		}
		return err
	}
	obs := x.observe(x.Key, got)
	x.watch().remember(x.Key, obs)
	x.settle(id, obs, correction)
	return nil
}

func (x *exec) watch() *watch { return x.watches[x.Key.GroupKind()] }

func (x *exec) settle(id objects.Digest, obs *objects.Observed, correction bool) {
	rec := x.memory.At(x.Key)
	rec.Content, rec.Labels, rec.Template = x.Desired.Content, x.Labels, id
	rec.Baseline, rec.UID = obs.Projection, obs.UID
	rec.Gone, rec.Failure = false, nil
	delete(x.outside, x.Key)
	if correction {
		rec.Count("", x.c.now)
	}
}

func (x *exec) verify() error {
	id := digest(string(x.Desired.Content[:]), string(x.Labels[:]))
	if x.Live.ProjectedBy != id {
		x.follow(x.Desired, x.Stamp, x.Labels)
		obs, err := x.read()
		if err != nil || obs == nil {
			return err
		}
		x.Live = obs
	}
	if x.Live.Matches {
		x.settle(id, x.Live, false)
		return nil
	}
	dry, err := x.apply(true)
	if err != nil {
		return err
	}
	if x.observe(x.Key, dry).Projection == x.Live.Projection {
		x.settle(id, x.Live, false)
		return nil
	}
	rec := x.memory.At(x.Key)
	rec.Content, rec.UID = objects.Digest{0xff}, x.Live.UID
	return nil
}

// read gets the object around the watch.
func (x *exec) read() (*objects.Observed, error) {
	var o *thing
	err := x.request("get "+x.Key.String(), func() error {
		o = x.c.get(x.Key)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if o == nil {
		rec := x.memory.At(x.Key)
		rec.Gone, rec.UID, rec.Failure = true, "", nil
		delete(x.outside, x.Key)
		if x.Live != nil {
			x.watch().confirmGone(x.Key, x.Live.UID)
		}
		return nil, nil
	}
	return x.keep(o), nil
}

func (x *exec) keep(o *thing) *objects.Observed {
	obs := x.observe(x.Key, o)
	if o.labelled {
		x.watch().remember(x.Key, obs)
		delete(x.outside, x.Key)
	} else {
		x.outside[x.Key] = obs
	}
	rec := x.memory.At(x.Key)
	rec.Gone, rec.Looked = false, x.c.now
	return obs
}

func (x *exec) delete() error {
	var left *thing
	err := x.guarded("delete "+x.Key.String(), func() (err error) {
		before := x.c.get(x.Key)
		if left, err = x.c.remove(x.Key, x.guard()); err == nil && before != nil {
			x.checkDelete(x.Key, before)
			x.wrote()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case left == nil:
		x.gone()
	default:
		x.keep(left)
	}
	return nil
}

func (x *exec) gone() {
	x.watch().confirmGone(x.Key, x.Live.UID)
	*x.memory.At(x.Key) = phases.Record{Gone: true}
	delete(x.outside, x.Key)
}

func (x *exec) release() error {
	var o *thing
	if err := x.request("get "+x.Key.String(), func() error { o = x.c.get(x.Key); return nil }); err != nil {
		return err
	}
	if o == nil {
		x.gone()
		return nil
	}
	err := x.request("release "+x.Key.String(), func() error {
		before := x.c.get(x.Key)
		err := x.c.release(x.Key, o)
		if err == nil && (before.labelled || before.controller() == ownerUID) {
			x.checkRelease(x.Key, before)
			x.wrote()
		}
		return err
	})
	if err != nil {
		return err
	}
	x.gone()
	return nil
}

func (x *exec) refuse(obs *objects.Observed) {
	state := x.state()
	rec := x.memory.At(x.Key)
	v := phases.Decide(phases.Case{
		Key: x.Key, Desired: x.Desired, Labels: x.Labels, Owner: state.Owner, Ours: state.Ours, Yields: state.Yields,
		Sight: phases.Sight{Synced: true, Object: obs}, Record: *rec, Now: x.c.now,
	})
	if v.Action != phases.Refuse {
		return
	}
	rec.Failure = &phases.Failure{
		Content: x.Desired.Content, Collision: true, Preflight: true, Message: v.Message, Until: x.c.now.Add(30 * time.Second),
	}
	delete(x.outside, x.Key)
}

func (x *exec) fail(err error, preflight bool) {
	rec := x.memory.At(x.Key)
	f := &phases.Failure{Message: err.Error(), Preflight: preflight, Attempts: 1, Immutable: errors.Is(err, errImmutable)}
	if x.Live != nil {
		f.UID = x.Live.UID
	}
	if x.Desired != nil {
		f.Content = x.Desired.Content
	}
	if old := rec.Failure; old != nil && old.Content == f.Content {
		f.Attempts = old.Attempts + 1
	}
	first, longest := 100*time.Millisecond, 30*time.Second
	if errors.Is(err, errBlocked) || errors.Is(err, errImmutable) {
		first, longest = time.Second, 5*time.Minute
	}
	f.Until = x.c.now.Add(min(first<<min(f.Attempts-1, 16), longest))
	rec.Failure = f
}
