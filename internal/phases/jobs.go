package phases

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// Run is the record of a Job that has finished: with which content, and how it ended.
type Run struct {
	Content objects.Digest
	Outcome objects.Outcome
	// UID of the Job, and of its namespace; empty where they are not known.
	UID, Namespace types.UID
}

// Succeeded reports whether d ran to success.
func (r Run) Succeeded(d *objects.Desired) bool {
	return r.Outcome == objects.Succeeded && d != nil && r.Content == d.Content
}

// Jobs is the desired record of Jobs that have finished.
type Jobs struct {
	// Runs is the record as it is to be. Entries of Jobs that no revision contains
	// any more are left out of it.
	Runs map[objects.Key]Run
	// Due means that Runs has an outcome that is not recorded yet: the caller
	// records it durably before it performs a step, and plans again.
	Due bool
	// Recorded are the Jobs whose end is recorded, so that the observation may be dropped.
	Recorded map[objects.Key]objects.Finished
	// Overflow are the Jobs for whose end the record has no room.
	Overflow []objects.Key
}

// record plans the record of Jobs. Only successes decide anything: where there is no
// room, failures are dropped first, then the latest entries.
func (p *planner) record() {
	jobs := Jobs{Runs: map[objects.Key]Run{}, Recorded: map[objects.Key]objects.Finished{}}
	for key, run := range p.Jobs {
		if p.remembers(key) && !p.lostNamespace(key, run) {
			jobs.Runs[key] = run
		}
	}
	for _, key := range p.jobKeys() {
		ended, seen := p.Finished[key]
		if !seen {
			continue
		}
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

// admit puts a run into the record where there is room for it.
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

// remembers reports whether the record of a Job stays: a revision contains it, or may
// do so because not all of its objects are known, or there is no revision at
// present.
func (p *planner) remembers(key objects.Key) bool {
	return len(p.Revisions) == 0 || slices.ContainsFunc(p.Revisions, func(r *Revision) bool {
		return r.incomplete || r.Contains(key)
	})
}

// lostNamespace reports whether the namespace that a Job ran in was recreated since: what
// the Job did is lost.
func (p *planner) lostNamespace(key objects.Key, run Run) bool {
	now := p.namespaceOf(key)
	return now != "" && run.Namespace != "" && now != run.Namespace
}

// namespaceOf returns the UID of an object's namespace, empty where it is not known. A
// watch may miss a namespace that lost its label.
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

// jobKeys returns the Jobs of all revisions in order.
func (p *planner) jobKeys() []objects.Key {
	if p.Finished == nil {
		return nil
	}
	found := map[objects.Key]struct{}{}
	for _, r := range p.Revisions {
		for i := range r.Phases {
			for _, d := range r.Phases[i].Objects {
				if d.Key.GroupKind() == objects.Job {
					found[d.Key] = struct{}{}
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), objects.Key.Compare)
}

// contentOf returns the content that a Job ran with: what this process wrote into
// it, else that of the revision that it names, else that of the template whose
// values it shows. It is zero where no revision has that content: then it decides
// nothing.
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

// completed counts an object that is not there because it has run already. Its
// probes count as true.
func (p *planner) completed(ph int, key objects.Key, report *Report) {
	report.Completed = append(report.Completed, key)
	report.Phases[ph].Written++
	report.Phases[ph].Ready++
}

// DescribeCompleted names the Jobs that are gone after they succeeded; a long list
// is counted. It is empty where there are none.
func DescribeCompleted(keys []objects.Key) string {
	if len(keys) == 0 {
		return ""
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.String()
	}
	return "Completed earlier: " + counted(names) + "."
}
