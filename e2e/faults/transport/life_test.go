package transport_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/faults/gateway"
	"lockstep.run/lockstep/e2e/faults/invariants"
	"lockstep.run/lockstep/e2e/harness"
)

// life is one package in a namespace of its own, with a few faults planned for
// each stage.
type life struct {
	scenario  *scenario
	namespace string
	plan      plan
	// reference has the state at the end of each stage without a fault; nil for the
	// lives that determine it.
	reference map[string]invariants.Snapshot

	mu      sync.Mutex
	ledger  *ledger
	counts  counter
	version string // resource version at the start of the stage, also in the other cluster
	there   string
	armed   []fault
	flights int
	last    time.Time // end of the last request
	looks   int       // since then: counted, because a busy machine delays looks and packages alike
	// seen are all positions, hits are the faults that happened, by position and in
	// their order.
	seen   []position
	hits   []fault
	begins []time.Time
	ends   map[string]invariants.Snapshot
}

func newLife(s *scenario, namespace string, plan plan, reference map[string]invariants.Snapshot) *life {
	return &life{scenario: s, namespace: namespace, plan: plan, reference: reference, ledger: newLedger(), ends: map[string]invariants.Snapshot{}}
}

const (
	// patience is the maximum length of a stage with its faults. The stage can kill the
	// manager dozens of times, and it starts over each time.
	patience = harness.Patience
	// calm is the time without requests after which a package's stage is over; quiescent is the
	// same without a reference to compare with.
	calm      = 300 * time.Millisecond
	quiescent = 1500 * time.Millisecond
	// lookAgain is the pause between two looks.
	lookAgain = 50 * time.Millisecond
)

// enter starts a stage.
func (l *life) enter(ctx context.Context, s *stage) error {
	list := &corev1alpha1.PackageList{}
	if err := l.scenario.env.Client.List(ctx, list, client.InNamespace(l.namespace)); err != nil {
		return err
	}
	there, err := l.scenario.there.version(ctx, l.namespace)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.ledger.stage, l.counts, l.version, l.there = s, counter{}, list.ResourceVersion, there
	l.armed = slices.Clone(l.plan[s.name])
	l.begins = append(l.begins, time.Now())
	l.last, l.looks = time.Now(), 0
	l.mu.Unlock()
	return s.start(ctx, l.scenario, l.namespace)
}

// live goes through one stage to its end.
func (l *life) live(ctx context.Context, s *stage) error {
	defer l.disarm()
	if err := l.enter(ctx, s); err != nil {
		return fmt.Errorf("cannot start: %w", err)
	}
	last := errors.New("requests are being made all the time")
	var looked time.Time
	err := wait.PollUntilContextTimeout(ctx, lookAgain, patience, true, func(ctx context.Context) (bool, error) {
		if !l.calm(looked) {
			return false, nil
		}
		looked = time.Now()
		err := l.ended(ctx, s)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("does not end within %s: %w", patience, last)
	}
	return nil
}

// calm reports whether it is worth looking at the package: no request is in flight, and
// there was one since the last look, or the last look was a while ago.
func (l *life) calm(looked time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	quiet := calm
	if l.reference == nil {
		quiet = quiescent
	}
	l.looks++
	return l.flights == 0 && l.looks > int(quiet/lookAgain) && time.Since(l.last) > quiet && (l.last.After(looked) || time.Since(looked) > 2*time.Second)
}

// ended reports whether the stage has come to its end.
func (l *life) ended(ctx context.Context, s *stage) error {
	state, err := l.look(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.ends[s.name] = state
	l.mu.Unlock()
	if l.reference == nil {
		return l.looksComplete(ctx, s)
	}
	for _, v := range invariants.Same(s.name, l.reference[s.name], state) {
		return errors.New(v.Message)
	}
	return nil
}

func (l *life) look(ctx context.Context) (invariants.Snapshot, error) {
	if l.scenario.there != nil {
		return invariants.LookThere(ctx, l.scenario.env.Client, l.scenario.there.Client, l.namespace)
	}
	return invariants.Look(ctx, l.scenario.env.Client, l.namespace)
}

// looksComplete checks a state before it becomes the reference.
func (l *life) looksComplete(ctx context.Context, s *stage) error {
	pkg := harness.Package(l.namespace, "shop", "")
	err := l.scenario.env.Client.Get(ctx, client.ObjectKeyFromObject(pkg), pkg)
	if s.to == nil {
		if err == nil {
			return errors.New("the package exists")
		}
		return client.IgnoreNotFound(err)
	}
	if err != nil {
		return err
	}
	says := func(typ, status string) bool {
		return slices.ContainsFunc(pkg.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == typ && string(c.Status) == status && c.ObservedGeneration == pkg.Generation
		})
	}
	if !says(corev1alpha1.ConditionAvailable, "True") || !says(corev1alpha1.ConditionProgressing, "False") || says(corev1alpha1.ConditionPaused, "True") != s.paused {
		return fmt.Errorf("the package reports %+v", pkg.Status)
	}
	return nil
}

// request decides about a request.
func (l *life) request(q *gateway.Request) gateway.Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flights++
	kind, name := l.kind(q), q.Name
	if kind == "" || l.ledger.stage == nil {
		return gateway.Decision{}
	}
	if kind == "event" {
		name = q.Patch.Reason
	}
	return l.decide(l.counts.next(l.ledger.stage.name, kind, name), l.version)
}

func (l *life) kind(q *gateway.Request) string {
	switch {
	case q.Writes():
		return l.ledger.kind(q)
	case q.List:
		return readPrefix + "all " + resourceOf(q)
	}
	return readPrefix + resourceOf(q)
}

// resourceOf names the resource of a request, and that it is in the other cluster.
func resourceOf(q *gateway.Request) string {
	if q.Other {
		return q.Resource + thereSuffix
	}
	return q.Resource
}

// decide returns the planned decision for a position.
func (l *life) decide(p position, version string) gateway.Decision {
	l.seen = append(l.seen, p)
	i := slices.IndexFunc(l.armed, func(f fault) bool { return f.position == p })
	if i < 0 {
		return gateway.Decision{}
	}
	f := l.armed[i]
	l.armed = slices.Delete(l.armed, i, i+1)
	l.hits = append(l.hits, f)
	return gateway.Decision{Fault: f.Fault, For: f.length, Version: version}
}

// disarm drops the remaining faults of a stage that has ended: restarted managers continue to
// count events, and a stale list would show them objects that the stage deleted.
func (l *life) disarm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = nil
}

func (l *life) answered(q *gateway.Request, code int) {
	if code < 300 && !q.DryRun && q.Writes() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ledger.took(q)
	}
}

func (l *life) over() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flights--
	l.last, l.looks = time.Now(), 0
}

// event decides about an event of a watch.
func (l *life) event(e *gateway.Event) gateway.Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ledger.stage == nil {
		return gateway.Decision{}
	}
	l.last, l.looks = time.Now(), 0
	version := l.version
	if e.Watch.Other {
		version = l.there
	}
	d := l.decide(l.counts.next(l.ledger.stage.name, watchPrefix+resourceOf(e.Watch), ""), version)
	if d.Fault.OfLists() {
		l.flights++ // until the list, before which there is a pause
		d.Met = l.over
	}
	return d
}

// missed returns the planned faults that were not injected.
func (l *life) missed() []fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	var missed []fault
	for _, s := range l.scenario.stages {
		for _, f := range l.plan[s.name] {
			if !slices.Contains(l.hits, f) {
				missed = append(missed, f)
			}
		}
	}
	return missed
}
