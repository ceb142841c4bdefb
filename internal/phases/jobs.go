package phases

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// Run records the content and the outcome of a Job that has finished.
type Run struct {
	Content objects.Digest
	Outcome objects.Outcome
	// UID is the UID of the Job, and Namespace the UID of its namespace; empty if unknown.
	UID, Namespace types.UID
}

// Succeeded reports whether d has run successfully.
func (r Run) Succeeded(d *objects.Desired) bool {
	return r.Outcome == objects.Succeeded && d != nil && r.Content == d.Content
}

// Jobs is the desired record of Jobs that have finished.
type Jobs struct {
	// Runs is the desired record. It leaves out Jobs that no revision contains any more.
	Runs map[objects.Key]Run
	// Due means that Runs has an outcome that is not recorded yet. The caller has to record it
	// durably before it performs a step, and then plan again.
	Due bool
	// Recorded are the Jobs whose end is recorded. Their observation can be dropped.
	Recorded map[objects.Key]objects.Finished
	// Overflow are the Jobs whose end did not fit into the record.
	Overflow []objects.Key
}

// admit adds a run to the record if there is room.
func (j *Jobs) admit(key objects.Key, run Run) bool {
	if _, known := j.Runs[key]; !known && len(j.Runs) >= limits.JobRecords {
		failures := slices.SortedFunc(maps.Keys(j.Runs), objects.Key.Compare)
		at := slices.IndexFunc(failures, func(k objects.Key) bool { return j.Runs[k].Outcome == objects.Failed })
		if at < 0 || run.Outcome == objects.Failed {
			return false
		}
		delete(j.Runs, failures[at])
	}

	j.Runs[key] = run
	return true
}

// record plans the record of Jobs. Only successes affect decisions. If there is no room, failures
// are dropped first, then the latest entries.
func (p *planner) record() {
	jobs := Jobs{Runs: map[objects.Key]Run{}, Recorded: map[objects.Key]objects.Finished{}}
	for key, run := range p.Jobs {
		if p.remembers(key) && !p.lostNamespace(key, run) {
			jobs.Runs[key] = run
		}
	}

	for _, key := range slices.SortedFunc(maps.Keys(p.Finished), objects.Key.Compare) {
		ended := p.Finished[key]
		content := p.contentOf(key, &ended)
		run := Run{Content: content, Outcome: ended.Outcome, UID: ended.UID, Namespace: p.namespaceOf(key)}
		switch recorded := p.Jobs[key]; {
		case content.IsZero():
		case (recorded.UID == run.UID || recorded.UID == "") && recorded.Content == run.Content && recorded.Outcome == run.Outcome:
			jobs.Recorded[key] = ended
		case jobs.admit(key, run):
			jobs.Due = true
		default:
			jobs.Overflow = append(jobs.Overflow, key)
		}
	}

	p.plan.Jobs = jobs
}

// remembers reports whether the record of a Job stays, because a revision contains it, a revision
// might contain it since not all of its objects are known, or there is no revision at present.
func (p *planner) remembers(key objects.Key) bool {
	return len(p.Revisions) == 0 || slices.ContainsFunc(p.Revisions, func(r *Revision) bool {
		return r.incomplete || r.Contains(key)
	})
}

// lostNamespace reports whether the namespace of a Job was recreated after it ran, which undoes the
// Job's work.
func (p *planner) lostNamespace(key objects.Key, run Run) bool {
	now := p.namespaceOf(key)
	return now != "" && run.Namespace != "" && now != run.Namespace
}

// namespaceOf returns the UID of an object's namespace, or an empty string if it is unknown. A
// watch can miss a namespace that lost its label.
func (p *planner) namespaceOf(key objects.Key) types.UID {
	namespace := objects.Key{Kind: "Namespace", Name: key.Namespace}
	if slices.ContainsFunc(p.Revisions, func(r *Revision) bool { return r.Contains(namespace) }) {
		if live := p.Live[namespace].Object; live != nil {
			return live.UID
		}
		return ""
	}
	return p.Namespaces[key.Namespace]
}

// contentOf returns the content that a Job ran with. It prefers the content that this process
// wrote, then the content of the revision that the Job names, then the template whose values the
// Job shows. It is zero if no revision has that content, then the run decides nothing.
func (p *planner) contentOf(key objects.Key, ended *objects.Finished) objects.Digest {
	var written, named, shown objects.Digest
	rec := p.Applied.of(key)
	for _, r := range p.Revisions {
		d, _ := r.Find(key)
		if d == nil {
			continue
		}
		if d.Content == rec.Content && rec.UID == ended.UID {
			written = d.Content
		}
		if r.Number == ended.Revision {
			named = d.Content
		}
		if d.Content == ended.Shows {
			shown = d.Content
		}
	}

	return cmp.Or(written, named, shown)
}
