package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// recordJobs records the Jobs that have finished, before any other step: they can be deleted at any
// moment, and a process that starts after that has only the record.
func (t *turn) recordJobs(ctx context.Context) (bool, error) {
	if !t.want.RecordsJobs {
		return false, nil
	}

	jobs := &t.r.plan.Jobs
	t.Tracker.ForgetFinished(jobs.Recorded)
	t.want.Store.Overflow(jobs.Overflow)
	if !jobs.Due {
		return false, nil
	}

	t.Again = true
	return true, t.want.Store.RecordJobs(ctx, jobs.Runs)
}

// jobNamespaces returns the namespaces of recorded Jobs whose UID is unknown: namespaces outside of
// all revisions are not watched. A namespaced owner is deleted with its namespace, if that has its
// objects.
func (t *turn) jobNamespaces() []string {
	r := t.r
	if !t.want.RecordsJobs || r.Owner.Namespace != "" && !r.Owner.Remote() {
		return nil
	}

	names := map[string]bool{}
	for key := range r.plan.Jobs.Runs {
		_, known := r.namespaces[key.Namespace]
		if !known && !r.Contains(objects.Key{Kind: "Namespace", Name: key.Namespace}) {
			names[key.Namespace] = true
		}
	}

	return slices.Sorted(maps.Keys(names))
}

// recreatedIn returns the known namespaces of Jobs that steps create objects in.
func (t *turn) recreatedIn(steps []phases.Step) []string {
	names := map[string]bool{}
	for _, step := range steps {
		if _, known := t.r.namespaces[step.Key.Namespace]; known && step.Action == phases.Create {
			names[step.Key.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// lookUpNamespaces reads the UIDs of namespaces, and reports whether one is new.
func (t *turn) lookUpNamespaces(ctx context.Context, names []string) (changed bool, err error) {
	for _, name := range names {
		uid, err := t.want.Store.Namespace(ctx, name)
		if err != nil && !apply.IsAbsent(err) {
			return changed, fmt.Errorf("cannot read namespace %s: %w", name, err)
		}
		before, known := t.r.namespaces[name]
		changed = changed || !known || before != uid
		t.r.namespaces[name] = uid
	}

	return changed, nil
}
