package objectdeployments

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	inmemory "lockstep.run/lockstep/test/memory"
)

// rivals is a cluster with deployments that want the same objects, and the manager that reconciles
// them at the same time.
type rivals struct {
	t       *rapid.T
	names   []string
	server  *inmemory.Server
	now     time.Time
	manager *sharedManager
	flying  []func() // writes of killed managers, still to arrive
	// late is set while a late write arrives, and strays are the objects that late writes created.
	late   bool
	strays map[types.UID]bool
	// writes is set while a request of the manager is performed.
	writes bool
	chaos  bool

	templates map[string]map[objects.Key]bool // of all deployments, by the name of the first phase
	holders
	log     []string
	failure string
}

// sharedManager is one process. It loses its whole memory when it is killed.
type sharedManager struct {
	*rivals
	cluster    *inmemory.Cluster
	reconciler *Reconciler
	view       view
	passes     map[string]*pass // under way, by deployment
	woken      map[string]bool
	due        map[string]time.Time
	dead       bool
	// mu is held while a pass uses the shared state: a pass can run next to another one that waits
	// for its look-up.
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
}

// pass is a pass of one deployment, which stops before and after each request. It can also wait for
// the look-up of another one.
type pass struct {
	next            chan struct{}
	atRequest, done bool
	pending         func() // the write under way
	lost            bool   // the answer of the request
	refused         bool
}

// pause waits for the next step.
func (p *pass) pause() {
	p.atRequest = true
	<-p.next
	p.atRequest = false
}

var rivalNames = []string{"one", "two", "three"}

// In TestRivals deployments roll out the same objects at the same time, and the manager is killed
// at any request, whose write can still arrive while the next manager works. If two deployments
// want one object, one gets all of its objects, and the other writes nothing. In the end one has
// all of them, and the next one gets them when it is deleted.
func TestRivals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { rapid.Check(struct{ testing.TB }{t}, testRivals) })
}

func testRivals(t *rapid.T) {
	r := newRivals(t, rivalNames)
	defer func() {
		r.chaos = false
		r.manager.kill()
	}()
	actions := slices.Concat(slices.Repeat([]string{"step"}, 24), slices.Repeat([]string{"deliver", "view"}, 6),
		[]string{"template", "delete", "create", "kill", "kill", "late", "late", "sync", "wait"})
	for range 20 * uniform(10).Draw(t, "actions") {
		r.act(actions[uniform(len(actions)).Draw(t, "action")])
	}
	for {
		r.converge()
		winner := r.checkWinners()
		if winner == "" {
			return
		}
		r.delete(winner)
	}
}

func newRivals(t *rapid.T, names []string) *rivals {
	r := &rivals{
		t: t, names: names, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), chaos: true,
		strays: map[types.UID]bool{}, templates: map[string]map[objects.Key]bool{},
	}
	r.server = inmemory.NewServer(apinames.Default, func() time.Time { return r.now }, append(homeKinds(), templateKinds()...)...)
	r.server.Stored = r.stored
	for _, name := range names[:2] {
		r.create(name)
	}
	r.manager = r.start()
	return r
}

func (r *rivals) logf(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("%5d ", r.server.Version())+fmt.Sprintf(format, args...))
}

func (r *rivals) failf(format string, args ...any) {
	r.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(r.log, "\n"))
}

func (r *rivals) act(action string) {
	name := r.names[uniform(len(r.names)).Draw(r.t, "deployment")]
	switch action {
	case "step":
		r.manager.step(name)
	case "deliver":
		r.manager.cluster.Deliver(kinds[uniform(len(kinds)).Draw(r.t, "kind")])
	case "sync":
		r.manager.cluster.Sync(kinds[uniform(len(kinds)).Draw(r.t, "kind")])
	case "view":
		r.manager.see([][]string{nil, {"ObjectDeployment", "ClusterObjectDeployment"}, {"ObjectSet", "ClusterObjectSet"}}[uniform(3).Draw(r.t, "kinds")]...)
	case "template":
		r.edit(name, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Template.Spec = r.template(name) })
	case "pause":
		r.edit(name, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = !d.Spec.Paused })
	case "forge":
		r.forge(name)
	case "restart":
		r.restart()
	case "delete":
		r.delete(name)
	case "create":
		r.create(name)
	case "kill":
		r.kill()
	case "late":
		r.arrive()
	case "wait":
		r.now = r.now.Add([]time.Duration{50 * time.Millisecond, 2 * time.Second, 31 * time.Second}[uniform(3).Draw(r.t, "wait")])
	}
}

func rivalKey(name string) objects.Key {
	if name == platform {
		return objects.Key{Group: corev1alpha1.GroupVersion.Group, Kind: "ClusterObjectDeployment", Name: name}
	}
	return objects.Key{Group: corev1alpha1.GroupVersion.Group, Kind: "ObjectDeployment", Namespace: "n", Name: name}
}

// template draws a template of some of the objects.
func (r *rivals) template(of string) corev1alpha1.ObjectSetTemplateSpec {
	t := &template{name: fmt.Sprintf("t%d", len(r.templates)+1)}
	wants, collision := map[objects.Key]bool{}, r.collision()
	for _, key := range universe {
		if !rapid.Bool().Draw(r.t, "wanted") {
			continue
		}
		wants[key] = true
		t.phases = append(t.phases, []wanted{{key: key, value: t.name, collision: collision}})
	}
	if len(t.phases) == 0 {
		t.phases = append(t.phases, nil)
	}
	r.templates[t.name] = wants
	r.logf("template %s %s", t, collision)
	return inNamespace(of, t.spec())
}

// wants returns the objects of a template.
func (r *rivals) wants(spec *corev1alpha1.ObjectSetTemplateSpec) map[objects.Key]bool {
	name, _, _ := strings.Cut(spec.Phases[0].Name, "-")
	return r.templates[name]
}

func (r *rivals) create(name string) {
	if r.server.Get(rivalKey(name)) != nil {
		return
	}
	d, key := &corev1alpha1.ObjectDeployment{}, rivalKey(name)
	d.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(key.Kind))
	d.Namespace, d.Name = key.Namespace, name
	d.Spec.RevisionHistoryLimit = ptr.To[int32](1)
	d.Spec.Template.Spec = r.template(name)
	made, err := r.server.Create(rivalKey(name), encode(d), "")
	if err != nil {
		r.failf("create %s: %v", name, err)
	}
	r.logf("user: create %s, %s", name, made.GetUID())
}

func (r *rivals) delete(name string) {
	if u := r.server.Get(rivalKey(name)); u != nil && u.GetDeletionTimestamp() == nil {
		r.logf("user: delete %s", name)
		if _, err := r.server.Delete(rivalKey(name), "", ""); err != nil {
			r.failf("delete %s: %v", name, err)
		}
	}
}

func (r *rivals) edit(name string, change func(*corev1alpha1.ObjectDeployment)) {
	if u := r.server.Get(rivalKey(name)); u == nil || u.GetDeletionTimestamp() != nil {
		return
	}
	r.logf("user: change %s", name)
	if _, err := r.server.Edit(rivalKey(name), "", func(u *unstructured.Unstructured) {
		d := decode(u, &corev1alpha1.ObjectDeployment{})
		change(d)
		u.Object = encode(d).Object
	}); err != nil {
		r.failf("change %s: %v", name, err)
	}
}

// arrive lets a write of a killed manager take effect.
func (r *rivals) arrive() {
	if len(r.flying) == 0 {
		return
	}
	write := r.flying[0]
	r.flying = r.flying[1:]
	r.logf("a write of a killed manager arrives")
	r.late = true
	write()
	r.late = false
	r.fail()
}

func (r *rivals) fail() {
	if r.failure != "" {
		r.failf("%s", r.failure)
	}
}

// deployments returns the existing deployments, by UID.
func (r *rivals) deployments() map[types.UID]*corev1alpha1.ObjectDeployment {
	found := map[types.UID]*corev1alpha1.ObjectDeployment{}
	for _, name := range r.names {
		if u := r.server.Get(rivalKey(name)); u != nil {
			found[u.GetUID()] = decode(u, &corev1alpha1.ObjectDeployment{})
		}
	}
	return found
}

// stored checks each write of the manager: while objects of a template are written, no other
// deployment has one of the template's objects.
func (r *rivals) stored(e inmemory.Event) {
	if e.Key.Group != group || !r.writes || e.After == nil {
		return
	}
	r.logf("%s: %s", e.Key, objectOf(e.After))
	if r.late && e.Before == nil {
		r.strays[e.After.GetUID()] = true
	}
	by := objectOf(e.After).controller()
	d := r.deployments()[by]
	if r.late || d == nil || d.DeletionTimestamp != nil || slices.Contains(r.names, platform) {
		return
	}
	written := objectOf(e.After).value // the name of the template
	for other := range r.templates[written] {
		o := objectOf(r.server.Get(other))
		if o != nil && o.controller() != "" && o.controller() != by && !r.strays[o.uid] && r.failure == "" {
			r.failure = fmt.Sprintf("%s writes %s of %s while %s has %s of it", d.Name, e.Key, written, o.controller(), other)
		}
	}
}

// start starts a manager.
func (r *rivals) start() *sharedManager {
	m := &sharedManager{
		rivals: r, cluster: r.server.Connect(), passes: map[string]*pass{}, woken: map[string]bool{}, due: map[string]time.Time{},
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	tracker := tracking.New(apinames.Default)
	m.cluster.Observe, m.cluster.Changed, m.cluster.KindChanged, m.cluster.Send = tracker.Observe, tracker.Changed, tracker.KindChanged, m.send
	client := func(cached bool) *home {
		return &home{server: r.server, view: func() view { return m.view }, cached: cached, request: m.request}
	}
	m.reconciler = New(Home{
		Client: client(true), Reader: client(false), Events: &events.FakeRecorder{}, Now: func() time.Time { return r.now },
	}, &engine.Engine{Cluster: m.cluster, Tracker: tracker, Pool: m}, func(key objects.OwnerKey) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.woken[key.Name] = true
	})
	m.reconciler.Fresh.Now, m.reconciler.written.Now = m.reconciler.Now, m.reconciler.Now
	m.see()
	for _, name := range r.names {
		m.woken[name] = true
	}
	return m
}

// step continues the pass of a deployment until its next request, or starts one. It reports whether
// there was something to do.
func (m *sharedManager) step(name string) bool {
	for other := range m.passes { // others wait for the restoration of the claims
		if !m.reconciler.restored {
			name = other
		}
	}
	p := m.passes[name]
	if p == nil {
		if due, ok := m.due[name]; !m.woken[name] && (!ok || m.now.Before(due)) {
			return false
		}
		m.woken[name] = false
		delete(m.due, name)
		p = &pass{next: make(chan struct{})}
		m.passes[name] = p
		go func() {
			m.run(context.WithValue(m.ctx, passKey{}, p), name)
			p.done = true
		}()
	} else if !p.atRequest {
		return false // it waits for the look-up of another one
	} else if m.chaos {
		switch uniform(30).Draw(m.t, "fault") {
		case 29:
			p.lost = true
		case 28:
			p.refused = true
		}
	}
	if p.atRequest {
		p.next <- struct{}{}
	}
	synctest.Wait()
	maps.DeleteFunc(m.passes, func(_ string, p *pass) bool { return p.done })
	m.checkRestored()
	m.fail()
	return true
}

type passKey struct{}

func (m *sharedManager) run(ctx context.Context, name string) {
	key := rivalKey(name)
	result, err := m.reconciler.Reconcile(ctx, objects.OwnerKey{Kind: key.Kind, Namespace: key.Namespace, Name: name})
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.logf("pass of %s: %v", name, err)
		result.RequeueAfter = 50 * time.Millisecond
	}
	if result.RequeueAfter > 0 {
		m.due[name] = m.now.Add(result.RequeueAfter)
	}
}

// kill clears the memory of the manager. The writes in flight can still arrive.
func (m *sharedManager) kill() {
	m.dead = true
	m.cancel()
	for _, name := range slices.Sorted(maps.Keys(m.passes)) {
		p := m.passes[name]
		if pending := p.pending; pending != nil && m.chaos && rapid.Bool().Draw(m.t, "still arrives") {
			m.flying = append(m.flying, pending)
		}
		if p.atRequest {
			p.next <- struct{}{}
		}
		synctest.Wait()
	}
	clear(m.passes)
}

// Run performs tasks one by one.
func (m *sharedManager) Run(ctx context.Context, _ objects.OwnerKey, _ bool, n int, do func(int)) {
	for i := range n {
		if ctx.Err() == nil {
			do(i)
		}
	}
}

// request sends one request: other passes continue before it arrives, and before its answer does.
func (m *sharedManager) request(ctx context.Context, what string, write bool, do func() error) error {
	p, _ := ctx.Value(passKey{}).(*pass)
	if m.dead {
		return context.Canceled
	}
	effect := func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.writes = true
		err := do()
		m.writes = false
		m.logf("%s: %v", what, err)
		return err
	}
	if write {
		p.pending = func() { _ = effect() }
	}
	if p.pause(); m.dead {
		return context.Canceled
	}
	p.pending = nil
	lost, refused := p.lost, p.refused
	p.lost, p.refused = false, false
	if refused {
		return errConnection
	}
	err := effect()
	if p.pause(); m.dead {
		return context.Canceled
	}
	p.lost, p.refused = false, false
	if lost {
		return errConnection
	}
	return err
}

func (m *sharedManager) send(ctx context.Context, r inmemory.Request, do func() error) error {
	return m.request(ctx, r.String(), r.Writes(), do)
}

// see brings the caches, or the caches of some kinds, up to date.
func (m *sharedManager) see(only ...string) {
	m.view = observe(m.server, m.view, m.reconciler, func(u *unstructured.Unstructured) {
		name := u.GetName()
		for _, ref := range u.GetOwnerReferences() {
			name = ref.Name
		}
		m.woken[name] = true
	}, only...)
}

// converge ends all faults, and waits until the manager is idle.
func (r *rivals) converge() {
	r.chaos = false
	for len(r.flying) > 0 {
		r.arrive()
	}
	waits := 0
	for range convergeSteps {
		for _, key := range universe {
			r.report(key)
		}
		r.collect()
		for _, gk := range kinds {
			r.manager.cluster.Sync(gk)
			for r.manager.cluster.Deliver(gk) {
			}
		}
		r.manager.see()
		worked := false
		for _, name := range r.names {
			worked = r.manager.step(name) || worked
		}
		if worked {
			continue
		}
		if len(r.manager.due) == 0 {
			return
		}
		if waits++; waits > convergeWaits {
			break
		}
		r.now = slices.MinFunc(slices.Collect(maps.Values(r.manager.due)), time.Time.Compare)
	}
	r.failf("the manager does not come to an end")
}

// report writes the status of an object, as its controller does.
func (r *rivals) report(key objects.Key) {
	o := objectOf(r.server.Get(key))
	if o == nil || o.healthy || !probed(key) {
		return
	}
	if _, err := r.server.Edit(key, "", func(u *unstructured.Unstructured) {
		value, _, _ := unstructured.NestedString(u.Object, "spec", "value")
		u.Object["status"] = map[string]any{
			"observedGeneration": u.GetGeneration(), "value": value,
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
		}
	}); err != nil {
		r.failf("report of %s: %v", key, err)
	}
}

// collect simulates the garbage collector: it deletes the objects of deployments that do not exist,
// and ends deletions in the foreground.
func (r *rivals) collect() {
	there := r.deployments()
	for _, key := range r.server.Keys() {
		if slices.Contains(r.server.Get(key).GetFinalizers(), metav1.FinalizerDeleteDependents) {
			if _, err := r.server.Edit(key, "", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) }); err != nil {
				r.failf("collect %s: %v", key, err)
			}
			continue
		}
		for _, ref := range r.server.Get(key).GetOwnerReferences() {
			if there[ref.UID] == nil && r.server.Get(key) != nil && r.server.Get(key).GetDeletionTimestamp() == nil {
				r.logf("the garbage collector deletes %s", key)
				if _, err := r.server.Delete(key, "", ""); err != nil {
					r.failf("collect %s: %v", key, err)
				}
			}
		}
	}
}

// checkWinners checks that deployments have all of their objects or none, and that one waits only
// for another that has one of its objects. It returns a deployment that others wait for, or any
// remaining one.
func (r *rivals) checkWinners() (winner string) {
	has := map[string]bool{}
	there := r.deployments()
	for _, d := range there {
		winner = d.Name
		wants := r.wants(&d.Spec.Template.Spec)
		complete, blocked := true, false
		for key := range wants {
			o := objectOf(r.server.Get(key))
			complete = complete && o != nil && o.controller() == d.UID
			holder, held := r.holder(key)
			blocked = blocked || held && holder != d.UID && there[holder] != nil
		}
		if !complete && !blocked {
			r.failf("%s lacks objects, and waits for no other", d.Name)
		}
		if complete {
			has[d.Name] = true
		}
	}
	for _, d := range there {
		if has[d.Name] && len(there) > len(has) {
			winner = d.Name
		}
	}
	for _, key := range universe {
		if o := objectOf(r.server.Get(key)); o != nil && there[o.controller()] == nil {
			r.failf("%s is left behind by %q", key, o.controller())
		}
	}
	return winner
}

// holder returns which deployment has claimed an object.
func (r *rivals) holder(key objects.Key) (types.UID, bool) {
	for _, table := range r.manager.reconciler.claims {
		if holder, held := table.Holder(key); held {
			return holder.UID, true
		}
	}
	return "", false
}
