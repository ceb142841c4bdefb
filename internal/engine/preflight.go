package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/discovery"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// enter checks the steps that enter a phase, as a whole, before the first write: creations against
// the types of the schemas served now, changes by a dry run. It reports whether the steps can be
// performed; problems are in the records of the objects.
func (e *Engine) enter(ctx context.Context, r *Rollout, entry *phases.Entry) (bool, error) {
	run := &run{Engine: e, rollout: r}
	ok, err := run.checkTypes(ctx, entry.Steps)
	if err != nil {
		return false, err
	}

	changes := make([]*phases.Step, 0, len(entry.Steps))
	for i := range entry.Steps {
		if s := &entry.Steps[i]; s.Action != phases.Create && s.Action != phases.Recreate {
			changes = append(changes, s)
		}
	}

	var failed error
	err = e.each(ctx, r, false, len(changes), func(i int) error {
		good, err := run.tryChange(ctx, changes[i])
		run.mu.Lock()
		defer run.mu.Unlock()
		ok, failed = ok && good, cmp.Or(failed, err)
		return nil // the other changes are tried as well: all refusals are reported at once
	})
	err = cmp.Or(err, failed)
	return ok && err == nil, err
}

func (x *run) checkTypes(ctx context.Context, steps []phases.Step) (bool, error) {
	var objs []*unstructured.Unstructured
	var of []phases.Step
	for _, s := range steps {
		if s.Action != phases.Create && s.Action != phases.Recreate {
			continue
		}
		obj, err := s.Desired.Object(s.Metadata)
		if err != nil {
			return false, err
		}
		objs = append(objs, &unstructured.Unstructured{Object: obj})
		of = append(of, s)
	}

	if len(objs) == 0 {
		return true, nil
	}

	ok := true
	for i, err := range x.Cluster.Check(ctx, objs) {
		if err != nil {
			x.fail(of[i], err, true)
			ok = false
		}
	}

	return ok, nil
}

// tryChange dry-runs a change. It migrates the object first, and the step continues with the
// migrated object.
func (x *run) tryChange(ctx context.Context, s *phases.Step) (bool, error) {
	defer x.catch(ctx, *s)
	mapping, err := x.Cluster.Mapping(s.Key.GroupKind(), s.Desired.Version)
	if err != nil {
		x.fail(*s, err, true)
		return false, nil
	}

	one := &step{Step: *s, run: x, mapping: mapping}
	// An object of others is migrated once it is known that it can be adopted.
	if s.Live.StaleFields || !s.Foreign && one.migrates() {
		if err := one.migrate(ctx); err != nil && !refused(err) {
			return false, one.recover(ctx, err)
		}
	}

	s.Live = one.Live
	_, err = one.change(ctx, true)
	if err == nil {
		return true, nil
	}

	switch class := apply.Classify(err); class {
	case apply.NotLeading:
		return false, err
	case apply.Conflict, apply.Replaced:
		_, lookErr := one.read(ctx)
		return false, lookErr
	default:
		x.fail(*s, err, class == apply.Blocked || isMissing(err))
		return false, nil
	}
}

// precheck looks up the objects that a revision is to create and that no revision of its owner had
// before, and returns the obstacles: the package is not written while another owner holds one of
// its objects. It only reads.
func (e *Engine) precheck(ctx context.Context, r *Rollout, rev *Revision) ([]phases.Blocker, error) {
	fresh := make([]phases.Step, 0, 16)
	for _, d := range rev.AllObjects() {
		if r.wroteBefore(rev, d.Key) {
			continue
		}
		fresh = append(fresh, phases.Step{Key: d.Key, Desired: d, Metadata: rev.Metadata, Labels: rev.Labels})
	}

	existing, failed := e.existing(ctx, fresh)
	blocked := r.collisions(rev, existing, e.Cluster.Now())
	run := &run{Engine: e, rollout: r}
	for _, u := range failed {
		_, denied := apply.AsUnauthorized(u.err)
		switch {
		case ctx.Err() != nil, apply.Classify(u.err) == apply.NotLeading:
			return nil, u.err
		case denied && r.Owner.Remote(): // rights of the kubeconfig's user are the whole target's matter
			return nil, u.err
		case errors.Is(u.err, discovery.ErrUnavailable), apierrors.IsServiceUnavailable(u.err):
			// As for a kind that is not served, its phase waits. An earlier phase can be what mends it.
		default:
			why := run.explain(phases.Step{Key: u.key}, u.err)
			blocked = append(blocked, phases.Blocker{Key: u.key, Phase: rev.PhaseOf(u.key), Message: why, Kind: phases.BlockRefused})
		}
	}

	return blocked, nil
}

// collisions returns the existing objects of a revision that no revision of its owner had before,
// and that must not be taken.
func (r *Rollout) collisions(rev *Revision, existing map[objects.Key]*objects.Observed, now time.Time) []phases.Blocker {
	var blocked []phases.Blocker
	for i, d := range rev.AllObjects() {
		obs := existing[d.Key]
		if obs == nil || r.wroteBefore(rev, d.Key) {
			continue
		}
		v := phases.Decide(phases.DecisionInput{
			Key: d.Key, Desired: d, Labels: rev.Labels, Owner: r.Owner, Controllers: r.Controllers,
			Live: phases.LiveState{Synced: true, Object: obs}, Now: now,
		})
		if v.Action == phases.Refuse {
			blocked = append(blocked, phases.Blocker{Key: d.Key, Phase: rev.Phases[i].Name, Message: v.Message, Kind: phases.BlockCollision})
		}
	}

	return blocked
}

// wroteBefore reports whether another revision than rev contains the object.
func (r *Rollout) wroteBefore(rev *Revision, key objects.Key) bool {
	return r.anyRevision(func(other *Revision) bool {
		return other != rev && (other.Opened() > 0 || other.History) && other.Wants(key)
	})
}
