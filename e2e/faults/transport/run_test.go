package transport_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/faults/gateway"
	"lockstep.run/lockstep/e2e/faults/invariants"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// run is one manager, which is restarted if a fault kills it, and many packages, which go
// through their stages independently. They wait for each other before the last stage: then
// the manager has to be at rest, and a restart must not cause writes.
type run struct {
	*suite
	lives    []*life
	director *director
	crew     *gateway.Crew
	// mark is the start of the run in the audit log, started the start of the current
	// manager.
	mark, started sandbox.Position
	thereMark     sandbox.Position // start of the run in the target's audit log

	mu   sync.Mutex // of started too
	dead map[*life]bool
}

// newRun starts the manager of a run; starts are the faults for each start after the first. A held
// Lease is cleared for the next manager.
func (s *suite) newRun(t *testing.T, lives []*life, leader bool, starts [][]fault) *run {
	t.Helper()
	r := &run{suite: s, lives: lives, director: newDirector(lives, starts), dead: map[*life]bool{}}
	for _, l := range lives {
		s.env.Namespace(t, l.namespace)
		s.there.namespace(t, l.namespace)
	}
	var err error
	r.mark, err = s.audit.Mark(t.Context())
	require.NoError(t, err)
	r.thereMark = s.there.mark(t)
	before := func() {
		if leader {
			s.clearLease(t)
		}
		r.director.arm()
		// The previous manager has exited by now, and all its requests have ended.
		started, err := s.audit.Mark(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Errorf("cannot mark a start: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.started = started
	}
	r.crew = s.gateway.Start(t, r.director, before, fmt.Sprintf("--leader-elect=%t", leader), "--allow-local-targets")
	return r
}

// clearLease lets the next manager lead at once.
func (s *suite) clearLease(t *testing.T) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}}
	if err := client.IgnoreNotFound(s.env.Client.Delete(context.WithoutCancel(t.Context()), lease)); err != nil {
		t.Errorf("cannot clear the Lease: %v", err)
	}
}

// live goes through all stages and judges.
func (r *run) live(t *testing.T) {
	stages := r.scenario.stages
	last := len(stages) - 1
	r.through(t, stages[:last])
	r.rest(t)
	r.through(t, stages[last:])
	r.crew.Stop()
	r.judge(t)
	for _, last := range r.crew.Unasked() {
		// A manager exits with an error if discovery fails, and the kubelet restarts it.
		if len(r.director.hits) == 0 || !strings.Contains("\n"+last, "\nlockstep-manager: ") {
			t.Errorf("the manager ended without being killed; its log ends with:\n%s", last)
		}
	}
}

// through takes all packages through some stages, each at its own pace.
func (r *run) through(t *testing.T, stages []*stage) {
	var all sync.WaitGroup
	for _, l := range r.lives {
		all.Go(func() {
			for _, s := range stages {
				if r.fell(l) {
					return
				}
				if err := r.stage(t.Context(), l, s); err != nil {
					r.fail(t, l, s, err)
				}
			}
		})
	}
	all.Wait()
}

// stage takes one package through one stage and checks the conditions at its end.
func (r *run) stage(ctx context.Context, l *life, s *stage) error {
	if err := l.live(ctx, s); err != nil {
		return err
	}
	step := invariants.Step{Name: l.namespace + " " + s.name, To: s.to.content(l.namespace)}
	broken, err := invariants.Ownership(ctx, r.env.Client, r.scenario.objects(), step, l.namespace)
	if err != nil {
		return err
	}
	for _, v := range broken {
		return fmt.Errorf("%s", v)
	}
	return nil
}

func (r *run) fell(l *life) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead[l]
}

// fail reports a failed package, which skips all further stages.
func (r *run) fail(t *testing.T, l *life, s *stage, err error) {
	r.mu.Lock()
	r.dead[l] = true
	r.mu.Unlock()
	logged := r.crew.Log(l.namespace)
	t.Errorf("%s, %s: %v\nfaults in it so far: %v\nLOCKSTEP_SEED=%d repeats the plan; LOCKSTEP_FAULTS repeats a single one by a regular expression on its name\nlast lines of the log about it:\n%s",
		l.namespace, s.name, err, l.hits, r.seed, strings.Join(logged[max(0, len(logged)-30):], "\n"))
}

// rest judges invariant 5: the manager is at rest, and a restart writes nothing.
func (r *run) rest(t *testing.T) {
	if t.Failed() {
		return // a package that has not converged is not at rest
	}
	ctx := t.Context()
	collects, err := invariants.Collections(ctx, r.env.Client, slices.Collect(maps.Keys(r.director.lives))...)
	require.NoError(t, err)
	r.calm(t, collects)
	mark, err := r.audit.Mark(ctx)
	require.NoError(t, err)
	there := r.there.mark(t)
	_, err = r.audit.Settled(ctx, mark, restFor, func(sandbox.Entry) bool { return false })
	require.NoError(t, err)
	entries, err := r.audit.Since(ctx, mark, sandbox.ByUser(harness.ManagerUser()))
	require.NoError(t, err)
	entries = slices.DeleteFunc(slices.DeleteFunc(entries, r.resent), collects)
	complain(t, invariants.Rest("at rest", harness.ManagerUser(), entries))
	complain(t, invariants.Rest("at rest, in the target", r.user(), r.there.since(t, there)))
	mark, err = r.audit.Mark(ctx)
	require.NoError(t, err)
	there = r.there.mark(t)
	if r.there != nil {
		r.director.spare() // a target that does not answer is reported
	}
	r.crew.Restart()
	r.watches(t, mark)
	r.there.watches(t, there, len(r.lives))
	entries = r.quiescent(t, r.present())
	complain(t, invariants.Restart("restart, in the target", r.user(), r.there.since(t, there)))
	entries = slices.DeleteFunc(entries, collects)
	complain(t, invariants.Restart("restart", harness.ManagerUser(), entries))
}

// calm waits until the manager has no work left. Events come last: from then on, they are the
// only writes.
func (r *run) calm(t *testing.T, collects func(sandbox.Entry) bool) {
	mark, err := r.audit.Mark(t.Context())
	require.NoError(t, err)
	for {
		present := r.present()
		r.watches(t, present)
		entries := r.quiescent(t, mark)
		if r.present() != present {
			continue // another one has been started
		}
		entries = slices.DeleteFunc(entries, func(e sandbox.Entry) bool { return e.Object.Resource == "events" || collects(e) })
		complain(t, invariants.Restart("after the stages", harness.ManagerUser(), entries))
		return
	}
}

// present returns the start of the current manager in the audit log.
func (r *run) present() sandbox.Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.started
}

// watches waits for a watch by the manager, which proves that it is running.
func (r *run) watches(t *testing.T, from sandbox.Position) {
	t.Helper()
	harness.Eventually(t, patience, "the manager to come back", func(ctx context.Context) error {
		entries, err := r.audit.Since(ctx, from, sandbox.ByUser(harness.ManagerUser()), sandbox.ByVerb("watch"))
		if err == nil && len(entries) == 0 {
			err = errors.New("it watches nothing")
		}
		return err
	})
}

// quiescent waits until the manager sends no requests, and returns the previous ones.
func (r *run) quiescent(t *testing.T, from sandbox.Position) []sandbox.Entry {
	t.Helper()
	entries, err := r.audit.Settled(t.Context(), from, restFor, sandbox.ByUser(harness.ManagerUser()), func(e sandbox.Entry) bool { return e.Object.Resource != "leases" })
	require.NoError(t, err)
	return entries
}

// resent reports whether a request is an event that client-go sends again, ten seconds after
// a fault.
func (r *run) resent(e sandbox.Entry) bool {
	l := r.director.lives[e.Object.Namespace]
	return l != nil && e.Object.Resource == "events" && slices.ContainsFunc(l.hits, func(f fault) bool { return f.kind == "event" })
}

// restFor is how long the manager is watched at rest.
const restFor = 2 * time.Second

// judge judges every stage of every package by the audit log.
func (r *run) judge(t *testing.T) {
	entries, err := r.audit.Since(t.Context(), r.mark, sandbox.Writes())
	require.NoError(t, err)
	of := map[string][]sandbox.Entry{}
	for _, e := range append(entries, r.there.since(t, r.thereMark, sandbox.Writes())...) {
		of[e.Object.Namespace] = append(of[e.Object.Namespace], e)
	}
	for _, l := range r.lives {
		for i, begin := range l.begins {
			end := time.Now()
			if i+1 < len(l.begins) {
				end = l.begins[i+1]
			}
			var mine []sandbox.Entry
			for _, e := range of[l.namespace] {
				if !e.Received.Before(begin) && e.Received.Before(end) {
					mine = append(mine, e)
				}
			}
			r.judgeStage(t, l, r.scenario.stages[i], mine)
		}
	}
}

func (r *run) judgeStage(t *testing.T, l *life, s *stage, entries []sandbox.Entry) {
	step := invariants.Step{
		Name: l.namespace + " " + s.name, Manager: r.user(), From: s.from.content(l.namespace), To: s.to.content(l.namespace), Writes: entries,
		Gated:     func(o invariants.Object) bool { return strings.HasPrefix(o.Name, "gate-") },
		Operators: []string{operatorUser}, Unfinished: r.fell(l), Revision: r.director.revision,
	}
	broken := step.Judge()
	made := 0
	for _, e := range entries {
		if e.Verb == "create" && e.Object.Resource == "objectsets" && e.Code < 300 {
			made++
		}
	}
	if made != s.sets && !r.fell(l) {
		broken = append(broken, invariants.Violation{Step: step.Name, Invariant: 4, Message: fmt.Sprintf("%d sets were made, want %d", made, s.sets)})
	}
	if len(broken) > 0 {
		t.Errorf("%s with the faults %v (LOCKSTEP_SEED=%d)", step.Name, l.plan[s.name], r.seed)
	}
	complain(t, broken)
}

// complain fails the test with violations.
func complain(t *testing.T, broken []invariants.Violation) {
	for _, v := range broken {
		t.Error(v)
	}
}
