package engine

import (
	"bytes"
	"fmt"
	"time"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
)

// probeBudget is the time slice for probes of one pass. The zero value is unlimited.
type probeBudget struct {
	now  func() time.Time
	left time.Duration
}

// over reports whether the time slice is used up.
func (t *probeBudget) over() bool { return t.now != nil && t.left <= 0 }

// spend performs work and counts how long that takes.
func (t *probeBudget) spend(work func()) {
	if t.now == nil {
		work()
		return
	}
	began := t.now()
	work()
	t.left -= t.now().Sub(began)
}

// evaluate evaluates the probes on a live object, and tracks its readiness grace.
func (r *Revision) evaluate(key objects.Key, obs *objects.Observed, at time.Time, in *probeBudget) probes.Result {
	last, known := r.cachedResults[key]
	before := phases.Evaluated{Object: last.obs, Result: last.result}
	now := phases.Evaluated{Object: obs, Result: r.probe(key, obs, in)}
	if !known && now.Result.Outdated {
		before = r.recorded(key, obs)
	}

	former := r.graces[key]
	grace := phases.NextReadinessGrace(former, before, now, at)
	switch {
	case grace != nil:
		r.graces[key] = grace
		now.Result.GraceSince = grace.Since
	case former != nil:
		delete(r.graces, key)
	}

	return now.Result
}

// recorded returns the result of an earlier process: if the phase was ready, the object passed its
// probes at some generation.
func (r *Revision) recorded(key objects.Key, obs *objects.Observed) phases.Evaluated {
	if _, ph := r.Find(key); ph >= len(r.ready) || !r.ready[ph] {
		return phases.Evaluated{}
	}
	return phases.Evaluated{Object: &objects.Observed{UID: obs.UID, Generation: -1}, Result: probes.Result{Status: probes.True}}
}

// probe evaluates the probes on a live object, and reuses the result as long as the fields that
// they read are the same. It does not use a record from the response to our own write, because the
// cachedResults of one kind have to belong to one moment (invariant 1), nor a record that lacks
// fields that the probes read.
func (r *Revision) probe(key objects.Key, obs *objects.Observed, in *probeBudget) probes.Result {
	class := r.Class(key)
	if class == "" && !r.Probes.Selects(key.GroupKind()) {
		return probes.Result{Status: probes.True}
	}
	if !obs.Watched {
		return unseen("waiting for the watch to show the object as it was written")
	}
	if obs.FieldsGeneration < r.fieldGenerations[key.GroupKind()] {
		return unseen("waiting for a list with the fields that the probes of this revision read")
	}
	if why := lacks[obs.Lack]; why != "" {
		return probes.Result{Status: probes.Unknown, Messages: []string{why}}
	}

	v, evaluated := r.cachedResults[key]
	switch {
	case evaluated && v.obs == obs:
		return v.result
	case evaluated && bytes.Equal(v.obs.Trimmed, obs.Trimmed):
		v.obs = obs
	case class != "":
		v.obs, v.result = obs, probes.EvaluatePhase(obs.Trimmed, class)
	case in.over():
		return unseen("waiting to be judged by the probes, which take long")
	default:
		delete(r.cachedResults, key)
		if r.cost -= v.cost; r.cost >= limits.ProbesCost {
			return tooCostly
		}
		v.obs = obs
		exposes := r.exposes != nil && r.exposes(key)
		in.spend(func() { v.result, v.cost = r.Probes.EvaluateTrimmed(obs.Trimmed, exposes) })
		r.cost += v.cost
	}

	r.cachedResults[key] = v
	return v.result
}

// lacks describes why a record does not have the fields that probes read.
var lacks = map[objects.Lack]string{
	objects.LackTooLarge: fmt.Sprintf("not judged: the fields that the probes read have more than %d bytes: let them read single fields", limits.RecordBytes),
	objects.LackRoom: "not judged, by MemoryExceeded: the fields that probes read of the objects of this namespace, along with its packages, would take more than its share of the manager's memory: " +
		"let them read single fields, remove unused packages, or raise GOMEMLIMIT and the memory limit of the manager",
}

func unseen(why string) probes.Result {
	return probes.Result{Status: probes.Unknown, Unseen: true, Messages: []string{why}}
}

// tooCostly is the result of objects beyond limits.ProbesCost.
var tooCostly = probes.Result{Status: probes.Unknown, Messages: []string{fmt.Sprintf(
	"not judged: the probes of this revision cost more than %d on all of its objects together: simplify them, or split the package", limits.ProbesCost,
)}}
