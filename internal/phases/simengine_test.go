package phases_test

import (
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/internal/revisions"
)

// engine is one process that performs plans as package rollout does and steers
// revisions as package objectdeployments does, against a cluster. All of it is lost in
// a crash.
type engine struct {
	*simulation
	memory  phases.Memory
	outside map[objects.Key]*objects.Observed // live objects that the watch does not show
	watches map[schema.GroupKind]*watch
	tracks  map[objects.Key]track
	strays  map[objects.Key]bool
	loaded  map[types.UID]*phases.Revision
	began   time.Time
	// view is the deployment as the engine's cache shows it.
	view deployment
	// tearing means that the present plan is a teardown of everything.
	tearing bool
	// orphaned remembers that the deployment is deleted with its objects kept.
	orphaned   bool
	plan       phases.Plan
	current    *set
	prechecked map[types.UID]time.Time

	// woken asks for a pass; due does so at a time.
	woken bool
	due   time.Time

	resume func() (string, bool)
	stop   func()
}

// track is the template that an object is compared with.
type track struct {
	value, release string
	id             objects.Digest
}

// crashed ends a pass at the request that it waits for.
type crashed struct{}

func newEngine(s *simulation) *engine {
	e := &engine{
		simulation: s, memory: phases.Memory{}, outside: map[objects.Key]*objects.Observed{},
		watches: map[schema.GroupKind]*watch{}, tracks: map[objects.Key]track{}, strays: map[objects.Key]bool{},
		loaded: map[types.UID]*phases.Revision{}, view: s.c.deployment, woken: true,
		prechecked: map[types.UID]time.Time{}, began: s.c.now,
	}
	for _, gk := range kinds {
		e.watches[gk] = newWatch()
	}
	// Templates are known before the first watch starts.
	e.load()
	return e
}

// step goes on until the next request, or begins a pass. It reports whether
// there was something to do.
func (e *engine) step() bool {
	if e.resume == nil {
		if !e.woken && (e.due.IsZero() || e.c.now.Before(e.due)) {
			return false
		}
		e.woken, e.due = false, time.Time{}
		e.resume, e.stop = iter.Pull(e.run)
	}
	e.inside = true
	_, more := e.resume()
	e.inside = false
	if !more {
		e.resume = nil
	}
	if e.failure != "" {
		e.failf("%s", e.failure)
	}
	return true
}

// crash loses everything, also the answer of the request under way.
func (e *engine) crash() {
	if e.resume != nil {
		e.stop()
		e.resume = nil
	}
}

func (e *engine) run(yield func(string) bool) {
	e.yield = yield
	defer func() {
		if r := recover(); r != nil && r != any(crashed{}) {
			panic(r)
		}
	}()
	e.pass()
}

// request sends one request: others act before it arrives and before its answer
// does, and the answer may get lost.
func (e *engine) request(what string, do func() error) error {
	e.pause(what)
	fault := e.fault()
	if fault == "refused" {
		return errRetry
	}
	e.requests++
	err := do()
	e.c.logf("engine: %s: %v", what, err)
	e.pause(what + " answered")
	if fault == "lost" {
		return errRetry
	}
	return err
}

func (e *engine) pause(what string) {
	if !e.yield(what) {
		panic(crashed{})
	}
}

// requeue asks for a pass after d at the latest.
func (e *engine) requeue(d time.Duration) { e.requeueAt(e.c.now.Add(max(d, time.Millisecond))) }

func (e *engine) requeueAt(at time.Time) {
	if !at.IsZero() && (e.due.IsZero() || at.Before(e.due)) {
		e.due = at
	}
}

const maxPasses = 40

func (e *engine) pass() {
	for range maxPasses {
		again, err := e.decide()
		if err != nil {
			e.requeue(50 * time.Millisecond) // the queue's rate limit
			return
		}
		if !again {
			return
		}
	}
	e.requeue(time.Millisecond)
}

func (e *engine) decide() (bool, error) {
	if e.view.gone {
		return false, nil
	}
	if e.tearing = e.view.deleting; e.tearing {
		return e.tearDown()
	}
	e.load()
	if again, err := e.steer(); again || err != nil {
		return again, err
	}
	return e.advance()
}

// load brings the revisions in line with the sets.
func (e *engine) load() {
	present := map[types.UID]bool{}
	for _, s := range e.c.sets {
		if !s.archived {
			present[s.uid] = true
		}
	}
	for uid, rev := range e.loaded {
		if !present[uid] {
			e.drop(rev)
		}
	}
	for _, s := range e.c.sets {
		if !present[s.uid] {
			continue
		}
		rev := e.loaded[s.uid]
		if rev == nil {
			rev = e.revisionOf(s)
			for i := range s.ready {
				rev.Phases[i].Entered, rev.Phases[i].Earlier = true, true
			}
			e.loaded[s.uid] = rev
		}
		rev.Claimed, rev.Succeeded = s.claimed, s.succeeded
		rev.Paused = s.paused || e.view.paused
		rev.Removing = s.deleting || s.lifecycleArchived
		begun := max(rev.Begun(), s.begun)
		rev.Opened = max(rev.Opened, s.opened)
		rev.Ahead = rev.Opened - begun
	}
	for key, src := range phases.Templates(e.state()) {
		if _, followed := e.tracks[key]; !followed {
			e.follow(src.Desired, src.Stamp, src.Labels)
		}
	}
}

func (e *engine) drop(rev *phases.Revision) {
	delete(e.loaded, rev.UID)
	for i := range rev.Phases {
		for _, d := range rev.Phases[i].Objects {
			if !e.contains(d.Key) {
				delete(e.tracks, d.Key)
				delete(e.memory, d.Key)
				delete(e.outside, d.Key)
			}
		}
	}
}

func (e *engine) revisionOf(s *set) *phases.Revision {
	owner := objects.Owner{Kind: "ObjectDeployment", Name: "app", UID: string(ownerUID)}
	rev := &phases.Revision{
		Name: s.name, UID: s.uid, Number: s.number, Labels: digest(s.release), Since: strconv.Itoa(s.made),
		Stamp: objects.Stamp{Labels: map[string]string{"version": s.release}, Revision: s.number, Owner: owner},
	}
	for i, ph := range s.template.phases {
		phase := phases.Phase{Name: "phase-" + strconv.Itoa(i+1)}
		for _, w := range ph {
			phase.Objects = append(phase.Objects, &objects.Desired{
				Key: w.key, Version: "v1", Raw: []byte(w.value), Content: digest(w.value), Collision: w.collision, Keep: w.keep, Recreate: w.fixed() != "",
			})
		}
		rev.Phases = append(rev.Phases, phase)
	}
	return rev
}

func (e *engine) revisions() []*phases.Revision {
	var all []*phases.Revision
	for _, s := range e.c.sets {
		if rev := e.loaded[s.uid]; rev != nil {
			all = append(all, rev)
		}
	}
	return all
}

func (e *engine) contains(key objects.Key) bool {
	return slices.ContainsFunc(e.revisions(), func(r *phases.Revision) bool { return r.Contains(key) })
}

// state is what the core decides on.
func (e *engine) state() *phases.State {
	var strays []objects.Key
	for key := range e.strays {
		strays = append(strays, key)
	}
	slices.SortFunc(strays, objects.Key.Compare)
	return &phases.State{
		Owner:     objects.Owner{Kind: "ObjectDeployment", Name: "app", UID: string(ownerUID)},
		Revisions: e.revisions(), Look: e.look, Memory: e.memory, Strays: strays, Now: e.c.now, Paused: e.view.paused,
		Passed: func(gk schema.GroupKind, since string) bool {
			version, err := strconv.Atoi(since)
			return err == nil && e.watches[gk].seen >= version
		},
		Ours:    func(ref *metav1.OwnerReference) bool { return e.setByUID(ref.UID) != nil },
		Yields:  func(*metav1.OwnerReference) bool { return false },
		Selects: func(_ *phases.Revision, key objects.Key) bool { return probed(key) },
		Probe: func(_ *phases.Revision, key objects.Key, obs *objects.Observed) probes.Result {
			switch {
			case !probed(key):
				return probes.Result{Status: probes.True}
			case !obs.Watched:
				return probes.Result{Status: probes.Unknown, Messages: []string{"not watched yet"}, Unseen: true}
			case string(obs.Trimmed) == "healthy":
				return probes.Result{Status: probes.True}
			}
			// It may have got another generation: that opens nothing.
			return probes.Result{Status: probes.False, Messages: []string{"not healthy"}, ConditionFalse: true, Settling: e.began}
		},
	}
}

func (e *engine) look(key objects.Key) phases.Sight {
	w := e.watches[key.GroupKind()]
	sight := phases.Sight{Unserved: e.c.unserved[key.GroupKind()], Synced: w.synced}
	obs, ok := w.records[key]
	if seen := e.outside[key]; seen != nil {
		if !ok || seen.NewerThan(obs) {
			sight.Object = seen
			return sight
		}
		delete(e.outside, key)
	}
	if ok {
		sight.Object = obs
	}
	return sight
}

// observe makes a record of an object, judged by the template that it is
// compared with at present.
func (e *engine) observe(key objects.Key, o *thing) *objects.Observed {
	obs := &objects.Observed{
		UID: o.uid, ResourceVersion: strconv.Itoa(o.version), Owners: o.owners,
		Terminating: o.terminating, Keep: o.keep, Wrote: o.wrote, Revision: o.revision,
	}
	if o.terminating {
		obs.Held = objects.HeldBy(o.finalizers, nil)
	}
	if probed(key) {
		obs.Trimmed = []byte("sick")
		if o.healthy {
			obs.Trimmed = []byte("healthy")
		}
	}
	if tr, ok := e.tracks[key]; ok {
		mine := o.controller() == ownerUID
		value := visible(tr.value, o.value)
		obs.Projection = digest(string(tr.id[:]), value, o.release, strconv.FormatBool(o.labelled), strconv.FormatBool(mine))
		obs.ProjectedBy = tr.id
		obs.Matches = value == tr.value && o.release == tr.release && o.labelled && mine
	}
	return obs
}

// visible is what a live value looks like on the paths of a template: a field that
// the template does not have is not seen.
func visible(template, live string) string {
	if strings.HasPrefix(live, template+".") {
		return template
	}
	return live
}

func (e *engine) follow(d *objects.Desired, stamp objects.Stamp, labels objects.Digest) objects.Digest {
	id := digest(string(d.Content[:]), string(labels[:]))
	e.tracks[d.Key] = track{value: string(d.Raw), release: stamp.Labels["version"], id: id}
	return id
}

// deliver takes over the next event of a kind.
func (e *engine) deliver(gk schema.GroupKind) bool {
	w := e.watches[gk]
	if !w.synced || w.next >= len(e.c.events[gk]) {
		return false
	}
	ev := e.c.events[gk][w.next]
	w.deliver(ev, e.observe)
	if ev.obs != nil && ev.obs.controller() == ownerUID {
		if _, followed := e.tracks[ev.key]; !followed {
			e.strays[ev.key] = true
		}
	}
	e.woken = true
	return true
}

// sync lists a kind.
func (e *engine) sync(gk schema.GroupKind) bool {
	w := e.watches[gk]
	if w.synced || e.c.unserved[gk] {
		return false
	}
	w.synced, w.next, w.seen = true, len(e.c.events[gk]), e.c.version
	clear(w.records)
	for _, key := range e.c.keys() {
		o := e.c.get(key)
		if key.GroupKind() != gk || !o.labelled {
			continue
		}
		obs := e.observe(key, o)
		obs.Watched = true
		w.records[key] = obs
		if _, followed := e.tracks[key]; !followed && o.controller() == ownerUID {
			e.strays[key] = true
		}
	}
	e.woken = true
	return true
}

// steer makes a new revision where the template changed, and pauses sets.
func (e *engine) steer() (bool, error) {
	d := revisions.Decide(e.history(false))
	e.current = nil
	if d.Current >= 0 {
		e.current = e.c.sets[d.Current]
	}
	switch {
	case d.Create > 0:
		return true, e.makeSet(d.Create)
	case len(d.Pause) > 0:
		s := e.c.sets[d.Pause[0]]
		return true, e.request("pause "+s.name, func() error { s.paused = true; return nil })
	case len(d.Resume) > 0:
		s := e.c.sets[d.Resume[0]]
		return true, e.request("resume "+s.name, func() error { s.paused = false; return nil })
	}
	return false, nil
}

func (e *engine) history(torn bool) revisions.State {
	state := revisions.State{Empty: e.view.template == nil, Paused: e.view.paused, HistoryLimit: 2, Torn: torn}
	for _, s := range e.c.sets {
		rev := e.loaded[s.uid]
		lifecycle := corev1alpha1.ObjectSetLifecycleStateActive
		switch {
		case s.lifecycleArchived:
			lifecycle = corev1alpha1.ObjectSetLifecycleStateArchived
		case s.paused:
			lifecycle = corev1alpha1.ObjectSetLifecycleStatePaused
		}
		state.Revisions = append(state.Revisions, revisions.Revision{
			Name: s.name, UID: s.uid, Number: s.number, Lifecycle: lifecycle, Archived: s.archived, Deleting: s.deleting,
			Succeeded: s.succeeded, Opened: rev != nil && rev.Opened > 0, PausedByParent: s.paused,
			Current: s.template == e.view.template && s.release == e.view.release,
		})
	}
	return state
}

// advance takes the next step of the rollout.
func (e *engine) advance() (bool, error) {
	if done, err := e.claim(); done || err != nil {
		return done, err
	}
	e.plan = phases.Next(e.state())
	var urgent, background []phases.Step
	for _, s := range e.plan.Steps {
		if s.Background {
			background = append(background, s)
		} else {
			urgent = append(urgent, s)
		}
	}
	switch {
	case len(urgent) > 0:
		e.perform(urgent)
		e.settleStrays()
		return true, nil
	case e.plan.Entry != nil:
		e.enter(e.plan.Entry)
		return true, nil
	case e.plan.Gate != nil:
		return e.open(e.plan.Gate)
	}
	if done, err := e.succeed(); done || err != nil {
		return done, err
	}
	if done, err := e.settleHistory(); done || err != nil {
		return done, err
	}
	if len(background) > 0 {
		e.perform(background)
		return true, nil
	}
	e.requeueAt(e.plan.Retry)
	return false, nil
}

// claim looks at what exists and makes the claim durable.
func (e *engine) claim() (bool, error) {
	if e.current == nil {
		return false, nil
	}
	s, rev := e.current, e.loaded[e.current.uid]
	if rev == nil || rev.Claimed || rev.Removing || rev.Paused {
		return false, nil
	}
	if due := e.prechecked[s.uid]; e.c.now.Before(due) {
		e.requeueAt(due)
		return false, nil
	}
	rev.Blocked = ""
	refused, err := e.refused(rev)
	if err != nil {
		return false, err
	}
	if refused {
		rev.Blocked = "refused"
		e.prechecked[s.uid] = e.c.now.Add(30 * time.Second)
		e.requeueAt(e.prechecked[s.uid])
		return false, nil
	}
	return true, e.request("claim "+s.name, func() error {
		e.wrote()
		s.claim()
		return nil
	})
}

// makeSet makes a revision, with its claim on record where nothing is in the way.
func (e *engine) makeSet(number int64) error {
	tmpl, release := e.view.template, e.view.release
	refused, err := e.refused(e.revisionOf(&set{number: number, template: tmpl, release: release}))
	if err != nil {
		return err
	}
	return e.request("create set", func() error {
		s := e.createSet(number, tmpl, release)
		if !refused && !e.view.paused {
			s.claim()
		}
		return nil
	})
}

// refused looks for objects that a revision is to create, and that it must not take.
func (e *engine) refused(rev *phases.Revision) (refused bool, err error) {
	err = e.request("precheck "+rev.Name, func() error {
		state := e.state()
		for i := range rev.Phases {
			for _, d := range rev.Phases[i].Objects {
				if o := e.c.get(d.Key); o != nil && !e.wroteBefore(rev, d.Key) {
					v := phases.Decide(phases.Case{
						Key: d.Key, Desired: d, Owner: state.Owner, Ours: state.Ours, Yields: state.Yields,
						Sight: phases.Sight{Synced: true, Object: e.observe(d.Key, o)}, Now: e.c.now,
					})
					refused = refused || v.Action == phases.Refuse
				}
			}
		}
		return nil
	})
	return refused, err
}

func (e *engine) wroteBefore(rev *phases.Revision, key objects.Key) bool {
	return slices.ContainsFunc(e.revisions(), func(r *phases.Revision) bool { return r != rev && r.Opened > 0 && r.Contains(key) })
}

// open records that a phase may be written.
func (e *engine) open(gate *phases.Gate) (bool, error) {
	s := e.setByUID(gate.Revision.UID)
	if gate.Ahead {
		gate.Revision.Open(gate.Last)
		return true, nil
	}
	proof := e.watchProof(gate, s)
	if len(gate.Probed) > 0 {
		current, now := true, 0
		err := e.request("confirm", func() error {
			proof, now = e.confirmProof(), e.c.version
			for key, version := range gate.Probed {
				o := e.c.get(key)
				current = current && o != nil && o.labelled && strconv.Itoa(o.version) == version
			}
			return nil
		})
		if err != nil {
			return false, err
		}
		if !current {
			e.requeue(200 * time.Millisecond)
			return false, nil
		}
		gate.Revision.Proven, s.proven = gate.Last, now
	}
	// Where nothing is to be written in the last phase either, one record will do.
	rev := gate.Revision
	opened, ahead := rev.Opened, rev.Ahead
	rev.Open(gate.Last)
	e.plan = phases.Next(e.state())
	succeeds := e.succeeds()
	err := e.request("open phase "+strconv.Itoa(gate.Last+1)+" of "+s.name, func() error {
		e.checkGate(s, gate, proof)
		e.wrote()
		s.opened, s.begun, s.ready = gate.Last+1, gate.Last+1, gate.Last
		if succeeds {
			s.succeed()
		}
		return nil
	})
	if err != nil {
		rev.Opened, rev.Ahead = opened, ahead
	}
	return true, err
}

// succeeds reports whether the current revision is complete, which is not recorded yet.
func (e *engine) succeeds() bool {
	if e.current == nil {
		return false
	}
	rev := e.loaded[e.current.uid]
	if rev == nil || rev.Succeeded || rev.Paused || !rev.Claimed || rev.Blocked != "" {
		return false
	}
	report := &e.plan.Reports[slices.Index(e.revisions(), rev)]
	return report.Complete() && !report.InTransition()
}

func (e *engine) succeed() (bool, error) {
	if !e.succeeds() {
		return false, nil
	}
	s := e.current
	return true, e.request("succeed "+s.name, func() error {
		e.wrote()
		s.succeed()
		return nil
	})
}

func (e *engine) settleHistory() (bool, error) {
	d := revisions.Decide(e.history(e.plan.Torn))
	done := false
	for _, i := range d.Archive {
		if err := e.archive(e.c.sets[i]); err != nil {
			return false, err
		}
		done = true
	}
	for _, s := range e.c.sets {
		if s.lifecycleArchived && !s.deleting && !s.archived && e.plan.Torn {
			if err := e.markArchived(s); err != nil {
				return false, err
			}
			done = true
		}
	}
	var collected []*set
	for _, i := range d.Collect {
		collected = append(collected, e.c.sets[i])
	}
	for _, s := range e.c.sets {
		rev := e.loaded[s.uid] // as the plan was made
		if s.deleting && (e.plan.Torn && rev != nil && rev.Removing || s.archived) {
			collected = append(collected, s)
		}
	}
	for _, s := range collected {
		err := e.request("remove "+s.name, func() error { e.wrote(); e.removeSet(s); return nil })
		if err != nil {
			return false, err
		}
		done = true
	}
	return done, nil
}

func (e *engine) archive(s *set) error {
	if err := e.request("archive "+s.name, func() error { e.wrote(); s.lifecycleArchived = true; return nil }); err != nil {
		return err
	}
	return e.markArchived(s)
}

func (e *engine) markArchived(s *set) error {
	return e.request("mark archived "+s.name, func() error {
		e.wrote()
		e.checkArchived(s)
		s.archived = true
		return nil
	})
}

func (e *engine) tearDown() (bool, error) {
	if e.view.orphaning {
		e.orphaned = true
		return false, nil
	}
	if e.orphaned {
		return false, e.letGo()
	}
	e.load()
	state := e.state()
	state.Teardown = true
	e.plan = phases.Next(state)
	switch {
	case e.plan.Torn:
		return false, e.letGo()
	case len(e.plan.Steps) == 0:
		e.requeueAt(e.plan.Retry)
		return false, nil
	}
	e.perform(e.plan.Steps)
	e.settleStrays()
	return true, nil
}

func (e *engine) letGo() error {
	for len(e.c.sets) > 0 {
		s := e.c.sets[len(e.c.sets)-1]
		if err := e.request("remove "+s.name, func() error { e.wrote(); e.removeSet(s); return nil }); err != nil {
			return err
		}
	}
	err := e.request("let the deployment go", func() error { e.wrote(); e.c.deployment.gone = true; return nil })
	if err == nil {
		e.view.gone = true
	}
	return err
}

func (e *engine) settleStrays() {
	for key := range e.strays {
		if rec := e.memory[key]; e.contains(key) || rec != nil && rec.Gone {
			delete(e.strays, key)
		}
	}
}

func (e *engine) perform(steps []phases.Step) {
	order := make([]int, len(steps))
	for i := range order {
		order[i] = i
	}
	if len(steps) > 1 && e.chaos {
		order = rapid.Permutation(order).Draw(e.t, "order")
	}
	for _, i := range order {
		e.one(steps[i])
	}
}

func (e *engine) enter(entry *phases.Entry) {
	if !entry.Revision.Phases[entry.Phase].Entered {
		ok := true
		for _, s := range entry.Steps {
			if s.Action != phases.Create && s.Action != phases.Recreate {
				ok = e.tryChange(s) && ok
			}
		}
		if !ok {
			return
		}
		entry.Revision.Phases[entry.Phase].Entered = true
	}
	e.perform(entry.Steps)
}

func (e *engine) tryChange(s phases.Step) bool {
	x := &exec{engine: e, Step: s}
	_, err := x.apply(true)
	switch {
	case err == nil:
		return true
	case errors.Is(err, errConflict), errors.Is(err, errReplaced):
		_, _ = x.read()
		return false
	}
	x.fail(err, errors.Is(err, errBlocked) || errors.Is(err, errImmutable))
	return false
}
