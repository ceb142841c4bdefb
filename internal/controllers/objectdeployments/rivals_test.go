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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/apinames"
	inmemory "lockstep.run/lockstep/internal/cluster/memory"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// rivals is a cluster with deployments that want the same objects, and the manager that reconciles them at the same time.
type rivals struct {
	t       *rapid.T
	server  *inmemory.Server
	now     time.Time
	manager *sharedManager
	flying  []func() // writes of killed managers, still to arrive
	// late is set while one of them arrives, strays are the objects that they created.
	late   bool
	strays map[types.UID]bool
	// writes is set while a request of the manager is performed.
	writes bool
	chaos  bool

	templates map[string]map[objects.Key]bool // of all deployments, by the name of the first phase
	log       []string
	failure   string
}

// sharedManager is one process. All that it remembers is lost when it is killed.
type sharedManager struct {
	*rivals
	cluster    *inmemory.Cluster
	reconciler *Reconciler
	view       map[objects.Key]*unstructured.Unstructured
	passes     map[string]*pass // under way, by deployment
	woken      map[string]bool
	due        map[string]time.Time
	dead       bool
	// mu is held while a pass uses what they share: one goes on beside another whose look-up it waited for.
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
}

// pass is one of a deployment, which stops before and after each request. It may also wait for the look-up of another one.
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

// TestRivals has deployments roll out the same objects at the same time, and kills the manager at any request, whose write may still
// arrive while the next manager works: of two that want one object, one gets all of its objects, and the other writes nothing; in the
// end one has them all, and the next one when that is deleted.
func TestRivals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { rapid.Check(struct{ testing.TB }{t}, testRivals) })
}

func testRivals(t *rapid.T) {
	r := newRivals(t)
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

func newRivals(t *rapid.T) *rivals {
	r := &rivals{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), chaos: true,
		strays: map[types.UID]bool{}, templates: map[string]map[objects.Key]bool{},
	}
	all := []inmemory.Kind{
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), ClusterScoped: true},
		{GroupVersionKind: corev1alpha1.GroupVersion.WithKind("ObjectDeployment"), Custom: true, Unmanaged: true},
		{GroupVersionKind: corev1alpha1.GroupVersion.WithKind("ObjectSet"), Custom: true, Unmanaged: true},
	}
	for _, gk := range kinds {
		all = append(all, inmemory.Kind{GroupVersionKind: gk.WithVersion("v1"), Custom: gk.Kind == "Job"})
	}
	r.server = inmemory.NewServer(apinames.Default, func() time.Time { return r.now }, all...)
	r.server.Stored = r.stored
	for _, name := range rivalNames[:2] {
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
	name := rivalNames[uniform(len(rivalNames)).Draw(r.t, "deployment")]
	switch action {
	case "step":
		r.manager.step(name)
	case "deliver":
		r.manager.cluster.Deliver(kinds[uniform(len(kinds)).Draw(r.t, "kind")])
	case "sync":
		r.manager.cluster.Sync(kinds[uniform(len(kinds)).Draw(r.t, "kind")])
	case "view":
		r.manager.see([]string{"", "ObjectDeployment", "ObjectSet"}[uniform(3).Draw(r.t, "kinds")])
	case "template":
		r.edit(name, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Template.Spec = r.template() })
	case "delete":
		r.delete(name)
	case "create":
		r.create(name)
	case "kill":
		r.logf("kill")
		r.manager.kill()
		r.manager = r.start()
	case "late":
		r.arrive()
	case "wait":
		r.now = r.now.Add([]time.Duration{50 * time.Millisecond, 2 * time.Second, 31 * time.Second}[uniform(3).Draw(r.t, "wait")])
	}
}

func rivalKey(name string) objects.Key {
	return objects.Key{Group: corev1alpha1.GroupVersion.Group, Kind: "ObjectDeployment", Namespace: "n", Name: name}
}

// template draws a template of some of the objects.
func (r *rivals) template() corev1alpha1.ObjectSetTemplateSpec {
	t := &template{name: fmt.Sprintf("t%d", len(r.templates)+1)}
	wants := map[objects.Key]bool{}
	for _, key := range universe {
		if !rapid.Bool().Draw(r.t, "wanted") {
			continue
		}
		wants[key] = true
		t.phases = append(t.phases, []wanted{{key: key, value: t.name, collision: corev1alpha1.CollisionProtectionPrevent}})
	}
	if len(t.phases) == 0 {
		t.phases = append(t.phases, nil)
	}
	r.templates[t.name] = wants
	r.logf("template %s", t)
	return t.spec()
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
	d := &corev1alpha1.ObjectDeployment{}
	d.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind("ObjectDeployment"))
	d.Namespace, d.Name = "n", name
	d.Spec.RevisionHistoryLimit = ptr.To[int32](1)
	d.Spec.Template.Spec = r.template()
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

// deployments returns those that are there, by UID.
func (r *rivals) deployments() map[types.UID]*corev1alpha1.ObjectDeployment {
	found := map[types.UID]*corev1alpha1.ObjectDeployment{}
	for _, name := range rivalNames {
		if u := r.server.Get(rivalKey(name)); u != nil {
			found[u.GetUID()] = decode(u, &corev1alpha1.ObjectDeployment{})
		}
	}
	return found
}

// stored checks each write of the manager: of the objects of the template that is written, no other deployment has one.
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
	if r.late || d == nil || d.DeletionTimestamp != nil {
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
	tracker := engine.NewTracker(apinames.Default)
	m.cluster.Observe, m.cluster.Changed, m.cluster.KindChanged, m.cluster.Send = tracker.Observe, tracker.Changed, tracker.KindChanged, m.send
	m.reconciler = New(Home{
		Client: &sharedHome{sharedManager: m, cached: true}, Reader: &sharedHome{sharedManager: m}, Events: &events.FakeRecorder{}, Now: func() time.Time { return r.now },
	}, &engine.Engine{Cluster: m.cluster, Tracker: tracker, Pool: m}, func(key objects.OwnerKey) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.woken[key.Name] = true
	})
	m.reconciler.Fresh.Now, m.reconciler.written.Now = m.reconciler.Now, m.reconciler.Now
	m.see("")
	for _, name := range rivalNames {
		m.woken[name] = true
	}
	return m
}

// step goes on with the pass of a deployment until its next request, or begins one. It reports whether there was something to do.
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
	m.fail()
	return true
}

type passKey struct{}

func (m *sharedManager) run(ctx context.Context, name string) {
	result, err := m.reconciler.Reconcile(ctx, objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: name})
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

// kill loses all that the manager remembers. The writes under way may still arrive.
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

// request sends one request: other passes go on before it arrives, and before its answer does.
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

// see brings the caches of a kind up to date, or of both.
func (m *sharedManager) see(kind string) {
	now := map[objects.Key]*unstructured.Unstructured{}
	for key, u := range m.view {
		if kind != "" && key.Kind != kind {
			now[key] = u
		}
	}
	for _, key := range m.server.Keys() {
		if key.Group == corev1alpha1.GroupVersion.Group && (kind == "" || key.Kind == kind) {
			now[key] = m.server.Get(key)
		}
	}
	wake := func(u *unstructured.Unstructured) {
		name := u.GetName()
		for _, ref := range u.GetOwnerReferences() {
			name = ref.Name
		}
		m.woken[name] = true
	}
	for key, u := range now {
		if old := m.view[key]; old == nil || old.GetResourceVersion() != u.GetResourceVersion() && (relevant(old, u) || !m.reconciler.Fresh.Contains(u)) {
			wake(u)
		}
	}
	for key, old := range m.view {
		if now[key] == nil {
			wake(old)
			m.reconciler.Fresh.Handler().OnDelete(old)
		}
	}
	m.view = now
}

// converge ends all faults, and waits until the manager has nothing left to do.
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
		r.manager.see("")
		worked := false
		for _, name := range rivalNames {
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

// report is what the controller of an object says of it.
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

// collect is the garbage collector: it deletes what belongs to deployments that are gone.
func (r *rivals) collect() {
	there := r.deployments()
	for _, key := range r.server.Keys() {
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

// checkWinners checks that deployments have all of their objects or none, and that one waits only for another that has one of its
// objects. It returns a deployment that others wait for, or any that is left.
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

// sharedHome is the client of deployments and sets. Reads from the caches are as old as the view.
type sharedHome struct {
	client.Client
	*sharedManager
	cached bool
}

func (h *sharedHome) Get(ctx context.Context, name client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	key := homeKey(obj)
	key.Namespace, key.Name = name.Namespace, name.Name
	read := func(u *unstructured.Unstructured) error {
		if u == nil {
			return apierrors.NewNotFound(resourceOf(key), key.Name)
		}
		answer(u, obj)
		return nil
	}
	if h.cached {
		return read(h.view[key])
	}
	return h.request(ctx, "get "+key.String(), false, func() error { return read(h.server.Get(key)) })
}

func (h *sharedHome) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	sets, ok := list.(*corev1alpha1.ObjectSetList)
	for _, key := range slices.SortedFunc(maps.Keys(h.view), objects.Key.Compare) {
		if !ok || key.Kind != "ObjectSet" {
			continue
		}
		set := decode(h.view[key], &corev1alpha1.ObjectSet{})
		if o.FieldSelector == nil || o.FieldSelector.Matches(fields.Set{ownerIndex: objectsets.OwnerOf(set).String()}) {
			sets.Items = append(sets.Items, *set)
		}
	}
	return nil
}

func (h *sharedHome) write(ctx context.Context, verb string, obj client.Object, do func(objects.Key) (*unstructured.Unstructured, error)) error {
	key := homeKey(obj)
	return h.request(ctx, verb+" "+key.String(), true, func() error {
		u, err := do(key)
		if err == nil && u != nil {
			answer(u, obj)
		}
		return err
	})
}

func (h *sharedHome) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	return h.write(ctx, "create", obj, func(key objects.Key) (*unstructured.Unstructured, error) {
		u := encode(obj)
		u.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(key.Kind))
		return h.server.Create(key, u, "")
	})
}

func (h *sharedHome) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	return h.write(ctx, "patch "+string(data), obj, func(key objects.Key) (*unstructured.Unstructured, error) {
		return h.server.MergePatch(key, data, "")
	})
}

func (h *sharedHome) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(opts)
	return h.write(ctx, "delete", obj, func(key objects.Key) (*unstructured.Unstructured, error) {
		_, err := h.server.Delete(key, *o.Preconditions.UID, ptr.Deref(o.Preconditions.ResourceVersion, ""))
		return nil, err
	})
}

func (h *sharedHome) Status() client.SubResourceWriter { return sharedStatus{home: h} }

type sharedStatus struct {
	client.SubResourceWriter
	home *sharedHome
}

func (w sharedStatus) Update(ctx context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	u := encode(obj)
	return w.home.write(ctx, fmt.Sprintf("status %v of", phasesOf(u)), obj, func(key objects.Key) (*unstructured.Unstructured, error) {
		return w.home.server.UpdateStatus(key, u)
	})
}
