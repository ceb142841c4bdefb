package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

const (
	// urgentSteps bounds how many steps run before the next plan.
	urgentSteps = 1000
	// backgroundSteps is the same for background work, after which
	// the state is read again.
	backgroundSteps = 64
	// staleRetry is the time after which a gate is tried again if a watch was behind; usually its
	// event comes first.
	staleRetry = 200 * time.Millisecond
)

// Step takes the step that is due first: the current revision is claimed, finished Jobs are
// recorded, objects are written and removed, a phase is entered, the next one is opened, the
// revision succeeds. Each is durable in the store before a later step relies on it.
func (e *Engine) Step(ctx context.Context, r *Rollout, w Want) (Outcome, error) {
	t := &turn{Engine: e, r: r, want: w}
	r.loseOverruled()
	e.follow(r, w.Teardown)
	r.releaseUnwritten(e.Cluster)
	for _, try := range []func(context.Context) (bool, error){t.claim, t.decide, t.recordJobs, t.recordRetained, t.recordSpared, t.recordNotes, t.write, t.enter, t.open, t.succeed} {
		if done, err := try(ctx); err != nil || done {
			t.TornDown = r.plan.TornDown
			return t.Outcome, err
		}
	}

	t.Idle, t.TornDown = true, r.plan.TornDown
	if t.TornDown && len(r.plan.Left) > 0 {
		log.FromContext(ctx).Info("objects that name the owner but belong to no revision stay because they cannot be deleted now", "objects", r.plan.Left[:min(len(r.plan.Left), limits.BlockingObjects)])
	}

	t.at(r.plan.Retry)
	return t.Outcome, nil
}

// Background performs some of the steps that come after all other work, from the last plan, and
// reports whether there were any. It leaves the rest to later reconciles, because the owner can
// have changed by then.
func (e *Engine) Background(ctx context.Context, r *Rollout, w Want) (bool, error) {
	steps := firstSteps(r.plan.Steps, true, backgroundSteps)
	if len(steps) == 0 {
		return false, nil
	}
	t := &turn{Engine: e, r: r, want: w}
	defer t.forgetStrays()
	return true, t.perform(ctx, steps, true)
}

// claim claims all objects of the current revision at once, before the first of them is written.
func (t *turn) claim(ctx context.Context) (bool, error) {
	rev := t.r.Loaded(t.want.Current)
	// A refused or unauthorized revision is checked again, because its obstacle can disappear.
	// Other faults are permanent.
	if rev == nil || rev.Claimed() || rev.Removing() || rev.Paused() || rev.Blocked() != "" && !rev.Refused() && rev.Unauthorized == nil {
		return false, nil
	}

	if t.Cluster.Now().Before(rev.recheck) {
		t.at(rev.recheck)
		return false, nil
	}

	if err := t.Claim(ctx, t.r, rev); err != nil {
		return false, err
	}

	if rev.Refused() || rev.Unauthorized != nil {
		t.at(rev.recheck)
		return false, nil
	}

	t.Again = true
	return true, rev.Record(rev.Claim, func() error {
		t.plan()
		return t.want.Store.Claimed(ctx, rev)
	})
}

// decide plans, with the UIDs of the namespaces that Jobs ran in.
func (t *turn) decide(ctx context.Context) (bool, error) {
	t.plan()
	read, err := t.lookUpNamespaces(ctx, t.jobNamespaces())
	if err == nil && read {
		t.plan()
	}
	return false, err
}

func (t *turn) plan() {
	r, w, now := t.r, &t.want, t.Cluster.Now()
	r.plan = r.decide(t.Cluster, t.strays(r), now, func(s *phases.State) {
		s.Teardown, s.Orphan, s.Paused, s.ReportDrift, s.Retain = w.Teardown, w.Orphan, w.Paused, w.ReportDrift, w.Retain
		if w.RecordsJobs {
			s.Namespaces, s.Jobs, s.Finished = r.namespaces, w.Jobs, t.Tracker.FinishedOf(r.Owner.OwnerKey)
		}
	})
	if r.ProbeBudgetSpent() {
		t.at(now)
	}
}

// strays returns the strays of an owner with sets. An owner of a single object has none: Removal
// removes its former objects.
func (e *Engine) strays(r *Rollout) []objects.Key {
	if r.single {
		return nil
	}
	return e.Strays(r)
}

// Strays returns the objects that the owner controls and no revision contains, in key order. It
// finds them by the watch, and by reads if they have lost the label of the watch since.
func (e *Engine) Strays(r *Rollout) []objects.Key {
	strays := e.Tracker.Strays(r.Owner.OwnerKey)
	for key, read := range r.unwatchedRecords {
		ref := read.Controller()
		if ref != nil && r.isOurs(*ref) && !r.desires(key) && !slices.Contains(strays, key) {
			strays = append(strays, key)
		}
	}

	slices.SortFunc(strays, objects.Key.Compare)
	return strays
}

// desires reports whether a revision other than the one of Removal contains an object.
func (r *Rollout) desires(key objects.Key) bool {
	return r.anyRevision(func(rev *Revision) bool { return rev.UID != RemovalOf(r.Owner) && rev.Contains(key) })
}

// forgetStrays forgets strays that a revision contains by now, and strays that no longer exist. One
// that comes back meanwhile is a stray again.
func (t *turn) forgetStrays() {
	for _, key := range t.strays(t.r) {
		if t.r.Contains(key) {
			t.Tracker.ForgetStray(t.r.Owner.OwnerKey, key)
			continue
		}
		if _, found := t.Cluster.Observed(key); found {
			continue
		}
		t.Tracker.ForgetStray(t.r.Owner.OwnerKey, key)
		if obs, found := t.Cluster.Observed(key); found {
			t.Tracker.Changed(objects.Change{Key: key, Observed: obs})
		}
	}
}

// recordRetained records which objects revisions are to retain.
func (t *turn) recordRetained(ctx context.Context) (bool, error) {
	for _, rev := range t.r.Revisions() {
		keys := t.r.plan.Retain[&rev.Revision]
		if len(keys) == 0 {
			continue
		}
		if err := t.want.Store.Retained(ctx, rev, rev.Retains.Union(sets.New(keys...))); err != nil {
			return true, err
		}
		rev.Retains = rev.Retains.Union(sets.New(keys...))
		t.Again = true
		return true, nil
	}

	return false, nil
}

// recordSpared records which objects the steps release instead of deleting them.
func (t *turn) recordSpared(ctx context.Context) (bool, error) {
	spared := slices.DeleteFunc(slices.Clone(t.r.plan.Spared), func(s phases.Spared) bool { return t.r.spared[s.Key] == s.Reason })
	if len(spared) == 0 || t.r.single {
		return false, nil
	}
	if err := t.want.Store.Spared(ctx, spared); err != nil {
		return false, err
	}

	for _, s := range spared {
		t.r.spared[s.Key] = s.Reason
	}
	return false, nil
}

// recordNotes records the notes about objects that were written.
func (t *turn) recordNotes(ctx context.Context) (bool, error) {
	if t.r.noted || len(t.r.notes) == 0 || t.r.single {
		return false, nil
	}
	err := t.want.Store.Noted(ctx, t.r.notes)
	t.r.noted = err == nil
	return false, err
}

// write performs the steps that neither enter a phase nor belong to the background.
func (t *turn) write(ctx context.Context) (bool, error) {
	steps := firstSteps(t.r.plan.Steps, false, urgentSteps)
	if t.r.single {
		steps = t.r.plan.Steps
	}
	if len(steps) == 0 {
		return false, nil
	}

	t.Again = true
	err := t.perform(ctx, steps, false)
	t.forgetStrays()
	if err == nil {
		// A missing object can have been deleted with its namespace. A look before the creation
		// would not show a namespace that is recreated in between.
		_, err = t.lookUpNamespaces(ctx, t.recreatedIn(steps))
	}

	return true, err
}

// firstSteps returns the first steps, at most so many, that are for the background or not.
func firstSteps(steps []phases.Step, background bool, most int) []phases.Step {
	var some []phases.Step
	for _, step := range steps {
		if step.Background == background && len(some) < most {
			some = append(some, step)
		}
	}
	return some
}

// perform performs steps, and reports to the store whose references these put on objects
// without them.
func (t *turn) perform(ctx context.Context, steps []phases.Step, background bool) error {
	takers := t.r.takers(steps)
	if len(takers) == 0 || t.want.References == nil {
		return t.Engine.perform(ctx, t.r, steps, background)
	}
	if err := t.want.References.Take(ctx, takers); err != nil {
		return err
	}
	return errors.Join(t.Engine.perform(ctx, t.r, steps, background), t.want.References.Release(ctx, takers))
}

// takers returns the owners that steps put on objects which these do not control. In another
// cluster there is no garbage collector that knows an owner.
func (r *Rollout) takers(steps []phases.Step) []types.UID {
	var owners []types.UID
	for i := range steps {
		s := &steps[i]
		switch s.Action {
		case phases.Adopt, phases.Change, phases.Correct, phases.Relabel:
			owner := s.Desired.Owner(r.Owner)
			if s.Live != nil && !r.Owner.Remote() && !owner.Is(s.Live.Controller()) && !slices.Contains(owners, owner.UID) {
				owners = append(owners, owner.UID)
			}
		}
	}

	return owners
}

// enter checks the first writes of a phase as a whole and performs them.
func (t *turn) enter(ctx context.Context) (bool, error) {
	entry := t.r.plan.Entry
	if entry == nil {
		return false, nil
	}

	t.Again = true
	if t.checks(entry) {
		ok, err := t.Engine.enter(ctx, t.r, entry)
		if err != nil || !ok {
			return true, err
		}
		entry.Revision.Enter(entry.Phase)
	}

	return true, t.perform(ctx, entry.Steps[:min(len(entry.Steps), urgentSteps)], false)
}

// checks reports whether an entry has to be checked. A change of a single object does not need a
// check: it is one write, which the API server refuses as a whole.
func (t *turn) checks(entry *phases.Entry) bool {
	if t.r.single {
		return !slices.ContainsFunc(entry.Steps, func(s phases.Step) bool { return s.Action != phases.Create })
	}
	return !entry.Revision.Phases[entry.Phase].Entered()
}

// open records durably that phases can be written, and with that also that the probes of all phases
// before the last of them were true at one moment. If these have no probed objects, the claim has
// recorded it.
func (t *turn) open(ctx context.Context) (bool, error) {
	gate := t.r.plan.Gate
	if gate == nil {
		return false, nil
	}

	rev := t.r.Loaded(gate.Revision.UID)
	if gate.Preopened {
		if err := rev.Open(gate.Last); err != nil {
			return true, err
		}
		rev.progressed, t.Again = t.Cluster.Now(), true
		return true, t.want.Store.Started(ctx, rev)
	}

	if len(gate.Probed) > 0 {
		current, err := t.Cluster.Confirm(ctx, gate.Probed, instanceSelector(gate.Revision))
		if err != nil {
			return true, err
		}
		if !current {
			// A watch is behind; its event wakes this owner again.
			t.at(t.Cluster.Now().Add(staleRetry))
			return true, nil
		}
		rev.Confirm(gate.Last)
	}

	err := rev.Record(func() error { return rev.Open(gate.Last) }, func() error { return t.recordOpened(ctx, rev) })
	if err != nil {
		return true, err
	}

	rev.progressed, t.Again = t.Cluster.Now(), true
	log.FromContext(ctx).V(1).Info("phase opened", "revision", rev.Name, "phase", rev.Phases[gate.Last].Name)
	return true, nil
}

// recordOpened records which phases are open. If the last one does not need a write either, it
// records the success of the revision along with them.
func (t *turn) recordOpened(ctx context.Context, rev *Revision) error {
	t.plan()
	if rev.UID == t.want.Current {
		if done, err := t.succeed(ctx); err != nil || done {
			return err
		}
	}
	return t.want.Store.Opened(ctx, rev)
}

// instanceSelector selects the objects of the revision's package, or all managed objects if the
// objects do not name their package.
func instanceSelector(r *phases.Revision) string {
	names := r.Metadata.Owner.Names
	selector := names.Selector()
	if instance := r.Metadata.Labels[names.InstanceLabel]; instance != "" {
		selector += "," + names.InstanceLabel + "=" + instance
	}
	return selector
}

// succeed records that the current revision was available for its success delay. After that,
// objects that only older revisions have can be removed.
func (t *turn) succeed(ctx context.Context) (bool, error) {
	rev, report := t.r.Loaded(t.want.Current), t.r.Report(t.want.Current)
	if rev == nil || report == nil || rev.Succeeded() || rev.Paused() || !rev.Claimed() || rev.Blocked() != "" || !report.Complete() || report.InTransition() {
		return false, nil
	}

	due, err := t.want.Store.SucceedsAt(ctx, rev)
	if err != nil {
		return false, err
	}

	if t.Cluster.Now().Before(due) {
		t.at(due)
		return false, nil
	}

	err = rev.Record(rev.Succeed, func() error { return t.want.Store.Succeeded(ctx, rev) })
	t.Again = t.Again || err == nil
	return err == nil, err
}
