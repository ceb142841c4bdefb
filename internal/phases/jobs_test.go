package phases_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

func jobKey(name string) objects.Key {
	return objects.Key{Group: objects.Job.Group, Kind: objects.Job.Kind, Namespace: "n", Name: name}
}

// jobRevision is a revision that has succeeded. Its only phase has Jobs with the given contents.
func jobRevision(number int64, contents map[string]string) *phases.Revision {
	r := &phases.Revision{
		Name: fmt.Sprintf("app-%d", number), UID: types.UID(fmt.Sprint("set-", number)), Number: number,
		Phases: []phases.Phase{{Name: "first"}},
	}
	r.SetClaimed()
	r.SetOpened(1)
	r.SetSucceeded(true)
	for name, content := range contents {
		r.Phases[0].Objects = append(r.Phases[0].Objects, &objects.Desired{Key: jobKey(name), Version: "v1", Content: digest(content)})
	}
	slices.SortFunc(r.Phases[0].Objects, func(a, b *objects.Desired) int { return a.Key.Compare(b.Key) })
	return r
}

// jobState is a state without live Jobs. Existing objects fail their probes.
func jobState(revisions ...*phases.Revision) *phases.State {
	s := &phases.State{
		Owner: objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Name: "app"}, UID: ownerUID}, Revisions: revisions,
		Applied: phases.AppliedObjects{}, Now: noon, Live: map[objects.Key]phases.LiveState{}, Finished: map[objects.Key]objects.Finished{},
	}

	for _, r := range revisions {
		r.Probed, r.Results = sets.Set[schema.GroupKind]{}, map[objects.Key]probes.Result{}
		for _, d := range r.Objects() {
			r.Probed.Insert(d.Key.GroupKind())
			r.Results[d.Key] = probes.Result{Messages: []string{"not ready"}}
			s.Live[d.Key] = phases.LiveState{Synced: true}
		}
	}

	return s
}

// seen adds the observation of a finished Job, unless ended is nil.
func seen(s *phases.State, key objects.Key, ended *objects.Finished) {
	if ended != nil {
		s.Finished[key] = *ended
	}
}

func TestJobsAreRecorded(t *testing.T) {
	t.Parallel()
	job := jobKey("migrate")
	incomplete := &phases.Revision{Name: "app-3", Number: 3}
	incomplete.MarkIncomplete("a slice is missing")
	first, second := jobRevision(1, map[string]string{"migrate": "one"}), jobRevision(2, map[string]string{"migrate": "two"})
	run := func(content string, o objects.Outcome) phases.Run {
		return phases.Run{Content: digest(content), Outcome: o}
	}

	for name, tc := range map[string]struct {
		reason    string
		revisions []*phases.Revision
		ended     *objects.Finished
		wrote     *phases.Applied
		recorded  map[objects.Key]phases.Run
		want      map[objects.Key]phases.Run
		due       bool
		noted     bool
	}{
		"nothing seen": {reason: "there is no outcome to record", revisions: []*phases.Revision{first}},
		"written by this process": {
			reason: "the last write is known", revisions: []*phases.Revision{first, second},
			ended: &objects.Finished{UID: "a", Outcome: objects.Succeeded, Revision: 1}, wrote: &phases.Applied{UID: "a", Content: digest("two")},
			want: map[objects.Key]phases.Run{job: run("two", objects.Succeeded)}, due: true,
		},
		"written by another process": {
			reason: "its revision decides", revisions: []*phases.Revision{first, second},
			ended: &objects.Finished{UID: "a", Outcome: objects.Succeeded, Revision: 1, Shows: digest("two")},
			want:  map[objects.Key]phases.Run{job: run("one", objects.Succeeded)}, due: true,
		},
		"written by a revision that is history": {
			reason: "its values decide", revisions: []*phases.Revision{second},
			ended: &objects.Finished{UID: "a", Outcome: objects.Failed, Revision: 1, Shows: digest("two")},
			want:  map[objects.Key]phases.Run{job: run("two", objects.Failed)}, due: true,
		},
		"a later object of that name was written": {
			reason: "what this process wrote last is about another Job", revisions: []*phases.Revision{first, second},
			ended: &objects.Finished{UID: "a", Outcome: objects.Succeeded, Revision: 1}, wrote: &phases.Applied{UID: "b", Content: digest("two")},
			want: map[objects.Key]phases.Run{job: run("one", objects.Succeeded)}, due: true,
		},
		"of a content that no revision wants": {
			reason: "it decides nothing", revisions: []*phases.Revision{second},
			ended: &objects.Finished{UID: "a", Outcome: objects.Succeeded, Revision: 1, Shows: digest("one")},
		},
		"recorded": {
			reason: "once is enough", revisions: []*phases.Revision{first},
			ended:    &objects.Finished{UID: "a", Outcome: objects.Succeeded, Revision: 1},
			recorded: map[objects.Key]phases.Run{job: run("one", objects.Succeeded)},
			want:     map[objects.Key]phases.Run{job: run("one", objects.Succeeded)}, noted: true,
		},
		"ended otherwise than before": {
			reason: "a retry counts", revisions: []*phases.Revision{first},
			ended:    &objects.Finished{UID: "b", Outcome: objects.Succeeded, Revision: 1},
			recorded: map[objects.Key]phases.Run{job: run("one", objects.Failed)},
			want:     map[objects.Key]phases.Run{job: run("one", objects.Succeeded)}, due: true,
		},
		"no revision has it any more": {
			reason: "the entry leaves with a write that is due anyway", revisions: []*phases.Revision{second},
			recorded: map[objects.Key]phases.Run{jobKey("other"): run("one", objects.Succeeded)},
		},
		"no revision at present": {
			reason:   "the next one can have it",
			recorded: map[objects.Key]phases.Run{job: run("one", objects.Succeeded)},
			want:     map[objects.Key]phases.Run{job: run("one", objects.Succeeded)},
		},
		"a slice is missing": {
			reason: "it can have the Job", revisions: []*phases.Revision{incomplete},
			recorded: map[objects.Key]phases.Run{job: run("one", objects.Succeeded)},
			want:     map[objects.Key]phases.Run{job: run("one", objects.Succeeded)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := jobState(tc.revisions...)
			s.Jobs = tc.recorded
			seen(s, job, tc.ended)
			if tc.wrote != nil {
				s.Applied[job] = tc.wrote
			}
			got := phases.Next(s).Jobs
			if tc.want == nil {
				tc.want = map[objects.Key]phases.Run{}
			}
			for key, run := range got.Runs {
				if tc.due && run.UID != tc.ended.UID {
					t.Errorf("%s: recorded is the Job %q", tc.reason, run.UID)
				}
				run.UID = ""
				got.Runs[key] = run
			}
			if diff := cmp.Diff(tc.want, got.Runs); diff != "" || got.Due != tc.due || (len(got.Recorded) > 0) != tc.noted {
				t.Errorf("%s: due %t, noted %v\n%s", tc.reason, got.Due, got.Recorded, diff)
			}
		})
	}
}

// A full record keeps the entries that affect decisions.
func TestJobRecordIsBounded(t *testing.T) {
	t.Parallel()
	contents, recorded := map[string]string{"zz": "one"}, map[objects.Key]phases.Run{}
	for i := range limits.JobRecords {
		name := fmt.Sprintf("job-%03d", i)
		contents[name] = "one"
		recorded[jobKey(name)] = phases.Run{Content: digest("one"), Outcome: objects.Succeeded}
	}

	s := jobState(jobRevision(1, contents))
	s.Jobs = recorded
	seen(s, jobKey("zz"), &objects.Finished{UID: "z", Outcome: objects.Succeeded, Revision: 1})
	plan := phases.Next(s)
	if diff := cmp.Diff([]objects.Key{jobKey("zz")}, plan.Jobs.Overflow); diff != "" || plan.Jobs.Due || len(plan.Jobs.Runs) != limits.JobRecords {
		t.Errorf("there is no room for another Job: due %t, %d recorded\n%s", plan.Jobs.Due, len(plan.Jobs.Runs), diff)
	}
	if plan.Entry == nil || len(plan.Entry.Steps) != 1 || plan.Entry.Steps[0].Key.Name != "zz" {
		t.Errorf("a Job that is not recorded is made again: %+v", plan.Entry)
	}

	recorded[jobKey("job-007")] = phases.Run{Content: digest("one"), Outcome: objects.Failed}
	plan = phases.Next(s)
	_, kept := plan.Jobs.Runs[jobKey("job-007")]
	if !plan.Jobs.Due || kept || plan.Jobs.Runs[jobKey("zz")].Outcome != objects.Succeeded || len(plan.Jobs.Runs) != limits.JobRecords {
		t.Errorf("a failure makes room for a success: due %t, failure kept %t", plan.Jobs.Due, kept)
	}
}

func TestCompletedJobs(t *testing.T) {
	t.Parallel()
	succeeded := func(content string) map[objects.Key]phases.Run {
		return map[objects.Key]phases.Run{jobKey("migrate"): {Content: digest(content), Outcome: objects.Succeeded}}
	}
	ended := &objects.Finished{UID: "a", Outcome: objects.Succeeded, Revision: 1}
	for name, tc := range map[string]struct {
		reason   string
		recorded map[objects.Key]phases.Run
		ended    *objects.Finished
		live     *objects.Observed
		report   bool
		// These are the expected results.
		creates, complete bool
		says              string
	}{
		"never seen": {reason: "it has to run", creates: true},
		"recorded":   {reason: "its success satisfies its probes", recorded: succeeded("one"), complete: true},
		"recorded, drift is reported": {
			reason: "its deletion is not drift", recorded: succeeded("one"), report: true, complete: true,
		},
		"recorded with another content": {reason: "that content has not run", recorded: succeeded("before"), creates: true},
		"recorded as failed": {
			reason: "its deletion requests another attempt", creates: true,
			recorded: map[objects.Key]phases.Run{jobKey("migrate"): {Content: digest("one"), Outcome: objects.Failed}},
		},
		"seen and not recorded yet": {
			reason: "a crash must not lose the record that the probes rely on", ended: ended, says: "has succeeded and no longer exists; that is being recorded",
		},
		"on its way out": {
			reason: "it was there long enough", recorded: succeeded("one"), complete: true,
			live: &objects.Observed{UID: "a", Terminating: true, Owners: controlledBy("ObjectDeployment", "app", string(ownerUID))},
		},
		"recorded, and there": {
			reason: "a live object is judged by its probes", recorded: succeeded("one"), says: "not ready",
			live: &objects.Observed{UID: "a", ProjectedBy: tmpl, Projection: shown, Owners: controlledBy("ObjectDeployment", "app", string(ownerUID))},
		},
		"recorded, and another controller's": {
			reason: "the name is taken", recorded: succeeded("one"), says: "is controlled by CronJob nightly",
			live: &objects.Observed{UID: "b", Owners: apinames.Default.References([]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "nightly", UID: "c", Controller: new(true)}}, nil)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := jobState(jobRevision(1, map[string]string{"migrate": "one"}))
			s.Jobs, s.ReportDrift = tc.recorded, tc.report
			seen(s, jobKey("migrate"), tc.ended)
			s.Live[jobKey("migrate")] = phases.LiveState{Synced: true, Object: tc.live}
			if tc.live != nil {
				s.Applied[jobKey("migrate")] = &phases.Applied{UID: "a", Content: digest("one"), Template: tmpl, Baseline: shown}
			}
			plan := phases.Next(s)
			report := plan.Reports[0]
			require.Equal(t, tc.creates, plan.Entry != nil || len(plan.Steps) > 0, fmt.Sprintf("%s: created", tc.reason))
			require.Equal(t, tc.complete, report.Complete() && !report.InTransition(), fmt.Sprintf("%s: complete", tc.reason))
			if len(report.Drifted) > 0 || tc.complete && len(report.Controlled) > 0 {
				t.Errorf("%s: a deleted Job is neither drifted nor controlled: %+v", tc.reason, report)
			}
			if got := phases.Describe(report.Blocking); tc.says != "" && !containsAll(got, tc.says) || tc.says == "" && got != "" {
				t.Errorf("%s: it has %q, want %q", tc.reason, got, tc.says)
			}
		})
	}
}

// Jobs take part in the gates: a recorded success lets the next phase open.
func TestCompletedJobOpensTheNextPhase(t *testing.T) {
	t.Parallel()
	r := jobRevision(1, map[string]string{"migrate": "one"})
	r.SetSucceeded(false)
	r.Phases = append(r.Phases, phases.Phase{Name: "second", Objects: []*objects.Desired{{Key: objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "c"}, Content: content}}})
	s := jobState(r)
	s.Now = noon.Add(time.Hour)
	if plan := phases.Next(s); plan.Gate != nil {
		t.Error("the Job has not run, and the next phase is opened")
	}

	s.Jobs = map[objects.Key]phases.Run{jobKey("migrate"): {Content: digest("one"), Outcome: objects.Succeeded}}
	if plan := phases.Next(s); plan.Gate == nil || plan.Gate.Phase != 1 || plan.Entry != nil {
		t.Errorf("the Job has run, and the next phase stays closed: %+v", plan)
	}
}

// TestJobsOfAFormerNamespace checks that a Job that succeeded runs again if its namespace was
// recreated, whether or not the package contains the namespace.
func TestJobsOfAFormerNamespace(t *testing.T) {
	t.Parallel()
	job, namespace := jobKey("migrate"), objects.Key{Kind: "Namespace", Name: "n"}
	recorded := phases.Run{Content: digest("one"), Outcome: objects.Succeeded, UID: "a", Namespace: "former"}
	for name, tc := range map[string]struct {
		reason string
		// brings means that the package contains the namespace. live is its UID, empty if the watch
		// does not show it.
		brings bool
		live   types.UID
		known  map[string]types.UID
		ended  *objects.Finished
		record phases.Run
		again  bool
	}{
		"the same":                       {"nothing went", true, "former", nil, nil, recorded, false},
		"another":                        {"what it made went with the former one", true, "now", nil, nil, recorded, true},
		"not shown":                      {"it can have lost its label", true, "", nil, nil, recorded, false},
		"seen to end as the former went": {"that is not an event of the present one", true, "now", nil, &objects.Finished{UID: "a", Outcome: objects.Succeeded, Revision: 1}, recorded, true},
		"of an older record":             {"it is not known where it ran", true, "now", nil, nil, phases.Run{Content: digest("one"), Outcome: objects.Succeeded}, false},
		"foreign, the same":              {"nothing went", false, "", map[string]types.UID{"n": "former"}, nil, recorded, false},
		"foreign, another":               {"what it made went with the former one", false, "", map[string]types.UID{"n": "now"}, nil, recorded, true},
		"foreign, gone":                  {"its namespace does not exist", false, "", map[string]types.UID{"n": ""}, nil, recorded, false},
		"foreign, not known":             {"it was not looked up", false, "", nil, nil, recorded, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rev := jobRevision(1, map[string]string{"migrate": "one"})
			if tc.brings {
				rev.Phases[0].Objects = append(rev.Phases[0].Objects, &objects.Desired{Key: namespace, Version: "v1", Content: digest("ns")})
			}
			s := jobState(rev)
			s.Jobs, s.Namespaces = map[objects.Key]phases.Run{job: tc.record}, tc.known
			seen(s, job, tc.ended)
			if tc.live != "" {
				s.Live[namespace] = phases.LiveState{Synced: true, Object: &objects.Observed{UID: tc.live}}
			}
			plan := phases.Next(s)
			completed := slices.Contains(plan.Reports[0].Completed, job)
			_, kept := plan.Jobs.Runs[job]
			if completed == tc.again || kept == tc.again || plan.Jobs.Due {
				t.Errorf("%s: counts as completed %t, is on record %t, want %t; due %t", tc.reason, completed, kept, !tc.again, plan.Jobs.Due)
			}
		})
	}
}
