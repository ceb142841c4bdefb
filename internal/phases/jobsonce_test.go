package phases_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
)

const (
	ownerUID = types.UID("deployment")
	rivalUID = types.UID("rival")
)

func digest(parts ...string) objects.Digest {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	var d objects.Digest
	copy(d[:], sum[:])
	return d
}

func containsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// runs is a cluster with one Job, and an engine that performs the core's plans. A crash loses
// everything but the record and the cluster.
type runs struct {
	number   int64
	content  string
	live     *objects.Observed
	ran      string // content of the live Job
	outcome  objects.Outcome
	nextUID  int
	recorded map[objects.Key]phases.Run
	memory   phases.AppliedObjects
	seen     *objects.Finished
	// successes are contents that were recorded as succeeded, or that the running process saw
	// succeed, since the last run of other content was recorded.
	durable, known string
}

// TestJobsRunOnce draws Jobs that end, vanish and change, managers that crash, and records that
// cannot be written. A success on record, or one that the running process has seen, never runs
// again; changed content does.
func TestJobsRunOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := &runs{number: 1, content: "a", memory: phases.AppliedObjects{}}
		t.Repeat(map[string]func(*rapid.T){
			"engine": func(t *rapid.T) { r.engine(t, rapid.Bool().Draw(t, "status refused")) },
			"ends": func(t *rapid.T) {
				if r.live == nil || r.outcome != "" {
					t.Skip("there is no running Job")
				}
				r.outcome = rapid.SampledFrom([]objects.Outcome{objects.Succeeded, objects.Failed}).Draw(t, "outcome")
				r.observe()
			},
			"vanishes": func(t *rapid.T) {
				if r.live == nil {
					t.Skip("there is no Job")
				}
				r.live, r.outcome = nil, ""
			},
			"upgrade": func(t *rapid.T) {
				r.number++
				r.content = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "content")
			},
			"crash": func(*rapid.T) {
				r.memory, r.seen, r.known = phases.AppliedObjects{}, nil, ""
				if r.live != nil && r.outcome != "" {
					r.observe() // by the list
				}
			},
		})
		r.live, r.outcome = nil, ""
		r.engine(t, false)
		if r.durable != r.content && r.live == nil {
			t.Fatalf("content %q has not succeeded, and is not run", r.content)
		}
	})
}

// observe simulates the watch of a Job that has ended.
func (r *runs) observe() {
	r.seen = &objects.Finished{UID: r.live.UID, Outcome: r.outcome, Revision: r.live.Revision, Shows: digest(r.ran)}
	if r.known = ""; r.outcome == objects.Succeeded {
		r.known = r.ran
	}
}

// engine makes passes until there is nothing left to do.
func (r *runs) engine(t *rapid.T, refused bool) {
	for range 20 {
		s := jobState(jobRevision(r.number, map[string]string{"job": r.content}))
		s.Applied, s.Jobs = r.memory, r.recorded
		seen(s, jobKey("job"), r.seen)
		s.Live[jobKey("job")] = phases.LiveState{Synced: true, Object: r.live}
		s.Revisions[0].Results[jobKey("job")] = probes.Result{
			Status: map[bool]probes.Status{true: probes.True, false: probes.False}[r.outcome == objects.Succeeded],
		}
		plan := phases.Next(s)
		if len(plan.Jobs.Recorded) > 0 {
			r.seen = nil
		}
		steps := plan.Steps
		if plan.Entry != nil {
			steps = append(steps, plan.Entry.Steps...)
		}
		if plan.Reports[0].Complete() && r.live == nil && r.durable != r.content {
			t.Fatalf("the revision counts as available without a record of %q", r.content)
		}
		switch {
		case plan.Jobs.Due && refused:
			r.checkSteps(t, steps)
			return
		case plan.Jobs.Due:
			r.checkSteps(t, steps)
			r.recorded = plan.Jobs.Runs
			if r.durable = ""; r.recorded[jobKey("job")].Outcome == objects.Succeeded {
				r.durable = r.known
			}
			continue
		case len(steps) == 0:
			return
		}
		r.checkSteps(t, steps)
		r.perform(t, steps[0])
	}

	t.Fatal("the engine does not come to rest")
}

// checkSteps fails if a Job runs again.
func (r *runs) checkSteps(t *rapid.T, steps []phases.Step) {
	for _, step := range steps {
		if step.Action == phases.Create && (r.durable == r.content || r.known == r.content) {
			t.Fatalf("the Job with content %q ran to success, and is created again", r.content)
		}
	}
}

func (r *runs) perform(t *rapid.T, step phases.Step) {
	key := jobKey("job")
	switch step.Action {
	case phases.Create:
		r.nextUID++
		r.ran, r.outcome = r.content, ""
		r.live = &objects.Observed{
			UID: types.UID(strings.Repeat("u", r.nextUID)), Revision: r.number, Watched: true, ProjectedBy: tmpl, Projection: digest(r.content),
			Owners: controlledBy("ObjectDeployment", "app", string(ownerUID)),
		}
		r.applied(key)
	case phases.Verify:
		if r.ran == r.content {
			r.applied(key)
			return
		}
		r.memory.At(key).Content, r.memory.At(key).UID = digest("another"), r.live.UID
	case phases.Change:
		// An immutable field was refused, and a user deletes the Job.
		r.live, r.outcome = nil, ""
	default:
		t.Fatalf("unexpected %s", step.Action)
	}
}

func (r *runs) applied(key objects.Key) {
	rec := r.memory.At(key)
	rec.Content, rec.UID, rec.Template, rec.Baseline, rec.Gone = digest(r.content), r.live.UID, tmpl, digest(r.content), false
}
