package objectdeployments

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	inmemory "lockstep.run/lockstep/test/memory"
)

// process is one manager: the reconciler with its memory, which is lost in a crash.
type process struct {
	*simulation
	cluster    *inmemory.Cluster
	reconciler *Reconciler
	// session is the target's session, if the owner is in another cluster.
	session *Target
	ctx     context.Context
	cancel  context.CancelFunc
	dead    bool

	// view is the content of the caches for deployments and sets; reconciled is the owner's view
	// when the present pass started.
	view       view
	reconciled *corev1alpha1.ObjectDeployment
	// tearing means that the present pass is a teardown of everything.
	tearing bool
	// since is the version of the server when the process started.
	since int64
	// known is the state of the watches when the last request was made. confirmed is the version
	// that was confirmed right before; 0 if it was not.
	known               proof
	confirmed, justThen int64

	// woken requests a pass; due requests it at a time.
	woken bool
	due   time.Time

	// resume continues a waiting pass, for an order of a number of tasks, or else for the fate of a
	// request.
	resume func() (int, bool)
	stop   func()
	yield  func(int) bool
	tasks  int
	order  []int
	fate   string
}

// Confirm notes the moment that a confirmation proves.
type confirming struct {
	*inmemory.Cluster
	process *process
}

func (c confirming) Confirm(ctx context.Context, seen map[objects.Key]string, selector string) (bool, error) {
	at := c.process.when(c.Version())
	current, err := c.Cluster.Confirm(ctx, seen, selector)
	if current && err == nil {
		c.process.justThen = at
		if active := c.process.active(); active != nil {
			for _, is := range c.process.sets {
				if is.uid == active.UID {
					is.proven = at
				}
			}
		}
	}
	return current, err
}

func newProcess(s *simulation) *process {
	p := &process{simulation: s, cluster: s.own.Connect(), woken: true, known: proof{}, since: s.server.Version()}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	tracker := tracking.New(apinames.Default)
	p.cluster.Observe, p.cluster.Changed, p.cluster.KindChanged = tracker.Observe, tracker.Changed, tracker.KindChanged
	p.cluster.Send = p.send
	p.reconciler = New(Home{
		Client: p.home(true), Reader: p.home(false), Events: &events.FakeRecorder{}, Now: s.clock,
	}, &engine.Engine{Cluster: confirming{p.cluster, p}, Tracker: tracker, Pool: p, Rights: p.rightsOf}, func(objects.OwnerKey) { p.woken = true })
	if s.remote {
		p.reconciler.Targets = others{p}
		p.connect()
	}
	p.reconciler.Fresh.Now, p.reconciler.written.Now = s.clock, s.clock
	p.see()
	return p
}

// home is the client of deployments and sets.
func (p *process) home(cached bool) *home {
	return &home{server: p.own, view: func() view { return p.view }, cached: cached, request: p.ask, absent: p.absent}
}

// connect makes a session of the target, as a start and a changed Secret do.
func (p *process) connect() {
	tracker := tracking.New(apinames.Default)
	p.cluster = p.server.Connect()
	p.cluster.Observe, p.cluster.Changed, p.cluster.KindChanged, p.cluster.Send = tracker.Observe, tracker.Changed, tracker.KindChanged, p.send
	p.session = NewTarget(&engine.Engine{Cluster: confirming{p.cluster, p}, Tracker: tracker, Pool: p}, p.reconciler.Reader, p.reconciler.enqueue, "target", "home")
	p.woken = true
}

// tracker returns the target's tracker.
func (p *process) tracker() *tracking.Tracker {
	if p.session != nil {
		return p.session.Tracker
	}
	return p.reconciler.Here.Tracker
}

// others is the one target of the simulation.
type others struct{ *process }

func (others) Use(string, targets.Ref, func()) {}
func (others) Release(string)                  {}

func (o others) Find(targets.Ref) (*Target, targets.State) {
	if o.away {
		return o.session, targets.State{Reason: corev1alpha1.ReasonTargetUnreachable, Message: "It is away.", Cluster: "target"}
	}
	return o.session, targets.State{Ready: true, Cluster: "target"}
}

func (p *process) watches() proof {
	at := proof{}
	for _, gk := range kinds {
		if seen := p.cluster.Seen(gk); seen > 0 {
			at[gk] = p.when(seen)
		}
	}
	return at
}

// step continues until the next request, or starts a pass. It reports whether there was something
// to do.
func (p *process) step() bool {
	if p.resume == nil {
		if !p.woken && (p.due.IsZero() || p.now.Before(p.due)) {
			return false
		}
		p.woken, p.due, p.tasks = false, time.Time{}, 0
		p.reconciled = &corev1alpha1.ObjectDeployment{}
		if u := p.view[deploymentKeyOf]; u != nil {
			decode(u, p.reconciled)
		}
		p.tearing = p.reconciled.DeletionTimestamp != nil
		p.resume, p.stop = iter.Pull(p.run)
	} else if p.tasks > 0 {
		p.order = rapid.Permutation(p.order).Draw(p.t, "order")
	} else {
		p.fate = p.fault()
	}
	p.inside = true
	var more bool
	p.tasks, more = p.resume()
	p.inside = false
	if !more {
		p.resume = nil
	}
	if p.failure != "" {
		p.failf("%s", p.failure)
	}
	return true
}

// run reconciles the deployment once.
func (p *process) run(yield func(int) bool) {
	p.yield = yield
	result, err := p.reconciler.Reconcile(p.ctx, objects.OwnerKey{Kind: deploymentKeyOf.Kind, Namespace: "n", Name: "app"})
	if err != nil {
		p.logf("pass: %v", err)
		result.RequeueAfter = 50 * time.Millisecond // the queue's rate limit
	}
	if due := p.now.Add(result.RequeueAfter); result.RequeueAfter > 0 && (p.due.IsZero() || due.Before(p.due)) {
		p.due = due
	}
}

// crash loses everything, also the answer of the request under way.
func (p *process) crash() {
	p.dead = true
	p.cancel()
	if p.resume != nil {
		p.stop()
		p.resume = nil
	}
}

// pause lets others act, and reports whether the process still runs.
func (p *process) pause(tasks int) bool {
	p.dead = p.dead || !p.yield(tasks)
	return !p.dead
}

// Run performs tasks one by one, in any order.
func (p *process) Run(ctx context.Context, _ objects.OwnerKey, _ bool, n int, do func(int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if n > 1 && p.chaos && !p.dead {
		p.order = order
		p.pause(n)
		order = slices.Clone(p.order)
	}
	for _, i := range order {
		if ctx.Err() == nil {
			do(i)
		}
	}
}

var errConnection = errors.New("the connection was lost")

// request sends one request. Other clients act before it arrives and before its answer arrives, and
// the answer can get lost.
func (p *process) request(what string, do func() error) error {
	if p.dead {
		return context.Canceled
	}
	p.known, p.confirmed, p.justThen = p.watches(), p.justThen, 0
	if !p.pause(0) {
		return context.Canceled
	}
	p.pending = nil
	fate := p.fate
	if fate == "refused" {
		return errConnection
	}
	p.requests++
	before, own := p.server.Version(), p.own.Version()
	err := do()
	if p.server.Version() != before || p.own.Version() != own {
		p.writes++
	}
	p.logf("engine: %s: %v", what, err)
	if !p.pause(0) {
		return context.Canceled
	}
	if fate == "lost" {
		return errConnection
	}
	return err
}

// send is the connection's function to the cluster. A write can still arrive after a crash.
func (p *process) send(_ context.Context, r inmemory.Request, do func() error) error {
	effect := func() error { return p.effect(r, do) }
	if r.Writes() {
		p.pending = &write{do: effect}
	}
	what := r.String()
	if p.away {
		p.logf("engine: %s: the target is away", what)
		return targets.ErrAway
	}
	if r.Body != nil {
		what += " " + string(r.Body)
	}
	return p.request(what, effect)
}

// effect performs a request, and checks its effect.
func (p *process) effect(r inmemory.Request, do func() error) (err error) {
	defer p.checked()
	before := p.get(r.Key)
	if err := p.authorize(r, before); err != nil {
		return err
	}
	p.engineWrites = true
	err = do()
	p.engineWrites = false
	after := p.get(r.Key)
	if err == nil && (r.Writes() || r.DryRun) {
		p.checkAccount(r, before, after)
	}
	if err != nil || !r.Writes() {
		return err
	}
	switch {
	case r.Verb == "delete" && before != nil:
		p.checkDelete(r.Key, before)
	case r.Verb == "apply", r.Verb == "create", r.Verb == "patch" && before.value != after.value:
		p.checkApply(r.Key, before, after)
	case p.releases(r, before, after):
		p.checkRelease(r.Key, before)
	}
	return nil
}

// checked, deferred, keeps a failure in a request from the code that sent it.
func (p *process) checked() {
	if r := recover(); r != nil && r != any(failed{}) {
		panic(r)
	}
}

// deliver takes over the next event of a kind, sync lists it.
func (p *process) deliver(gk schema.GroupKind) bool { return p.cluster.Deliver(gk) }
func (p *process) sync(gk schema.GroupKind) bool    { return p.cluster.Sync(gk) }

// see brings the caches of deployments and sets up to date, or only one of them, and wakes the
// process like the predicates of the controller. A process starts with filled caches.
func (p *process) see(only ...string) {
	if !p.ownAway || p.view == nil {
		p.view = observe(p.own, p.view, p.reconciler, func(*unstructured.Unstructured) { p.woken = true }, only...)
	}
}

// ask sends a request to home. A write can still arrive after a crash.
func (p *process) ask(_ context.Context, what string, writes bool, do func() error) error {
	if writes {
		effect := do
		do = func() error {
			defer p.checked()
			return effect()
		}
		p.pending = &write{do: do, own: true}
	}
	if p.ownAway {
		p.logf("engine: %s: home is away", what)
		return errConnection
	}
	return p.request(what, do)
}

// loaded returns the revision of a set as the process knows it, or nil.
func (p *process) loaded(uid types.UID) *engine.Revision {
	for _, rev := range p.revisions() {
		if rev.UID == uid {
			return rev
		}
	}
	return nil
}

func (p *process) rollout() *engine.Rollout {
	for _, o := range p.reconciler.owners {
		return o.rollout
	}
	return nil
}

func (p *process) revisions() []*engine.Revision {
	if r := p.rollout(); r != nil {
		return r.Revisions()
	}
	return nil
}

func (p *process) contains(key objects.Key) bool {
	return slices.ContainsFunc(p.revisions(), func(r *engine.Revision) bool { return r.Contains(key) })
}
