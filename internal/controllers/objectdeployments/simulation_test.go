package objectdeployments

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	inmemory "lockstep.run/lockstep/test/memory"
)

// simulation is a cluster with the engine and all other clients. Every draw is rapid's, so that a
// failure shrinks and its seed repeats it.
type simulation struct {
	t *rapid.T
	// server has the objects, and own has our own kinds: it is the same one unless the owner is
	// remote.
	server, own *inmemory.Server
	now         time.Time
	owner       types.UID // of the deployment
	past        map[objects.Key][]moment
	denied      map[objects.Key]bool // a webhook refuses writes of them
	// absent are accounts that do not exist, lost the rights that accounts lack.
	absent map[string]bool
	// retain means that the objects that a new template drops are retained.
	retain bool
	lost   map[right]bool
	// engineWrites is set while a request of the engine is performed.
	engineWrites bool
	engineMade   map[types.UID]bool // objects that the engine created or took over
	sets         []*set
	deleting     bool     // the user has deleted the deployment
	log          []string // what happened, for the report of a failure

	engine *process
	// chaos lets requests fail; moved lets objects change between phases, so that the orders of two
	// revisions can contradict each other.
	chaos, moved bool
	// setDeleted means that the user deleted a set, and its labels are lost.
	setDeleted bool
	// remote means that the owner is in another cluster than its objects.
	remote bool
	// away means that the target cannot be reached, ownAway that home cannot.
	away, ownAway bool
	restoration
	// manual means that a user activates revisions, rollback that revisions that miss their
	// deadline give way.
	manual, rollback bool
	// stuck keeps one object from ever getting healthy.
	stuck bool
	// late is set while a write of a crashed engine arrives; lateMade are objects
	// that such writes made or changed.
	late     bool
	lateMade map[types.UID]bool
	// orphaned are the objects that stay behind an orphaning delete; nil if there was none.
	orphaned map[types.UID]bool
	// lateSet means that a set might have been created after an orphaning delete: objects that it
	// has looked at can keep its label.
	lateSet bool
	// stripped are objects that lost their mark as ours.
	stripped map[types.UID]bool
	// loose are objects that were not ours when they were written.
	loose   map[types.UID]bool
	flying  []write // of crashed engines, still to arrive
	pending *write  // the write under way

	// inside is set while the engine's pass runs; failure is the error in it.
	inside  bool
	failure string

	raised           int64
	templates        []*template
	requests, writes int
}

func (s *simulation) clock() time.Time { return s.now }

func (s *simulation) logf(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%5d ", s.server.Version())+fmt.Sprintf(format, args...))
}

// TestEngine runs the engine against a cluster with every possible fault, checks the invariants of
// docs/development/invariants.md in every write, and at last, with no more faults, that the end is
// the same as in a run without any.
func TestEngine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, uniform(4).Draw(t, "remote") == 3)
		defer func() { s.engine.crash() }()
		actions := s.weights()
		for range 20 * uniform(16).Draw(t, "actions") {
			s.act(sample(s, "action", actions))
		}
		s.converge()
		s.checkConverged()
		s.checkIdle()
	})
}

// TestOrphaningDeletion deletes a deployment with its objects kept, and stops or kills the engine
// between any two steps of the garbage collector, with watches and caches that are behind, each by
// its own delay. No object is deleted, and none keeps a label of ours.
func TestOrphaningDeletion(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, uniform(4).Draw(t, "remote") == 3)
		defer func() { s.engine.crash() }()
		s.chaos = false
		if s.remote {
			s.saveWithoutSet()
		}
		s.converge()
		if s.remote && rapid.Bool().Draw(t, "rewound") {
			s.restoreHome()
		}
		// Without faults of requests: these have the engine look again.
		s.chaos = rapid.Bool().Draw(t, "chaos")
		if rapid.Bool().Draw(t, "stripped") {
			s.act("strip reference")
		}
		if rapid.Bool().Draw(t, "restored") {
			s.restoreOne()
		}
		upgraded := rapid.Bool().Draw(t, "upgraded")
		if upgraded { // the set can be created after the deletion
			s.use("template")
			s.engine.see("ObjectDeployment")
		}
		s.deleteDeployment(true)
		seen := sample(s, "seen", [][]string{nil, {"ObjectDeployment"}, {"ObjectDeployment"}, {"ObjectSet"}})
		steps := map[string]func(){
			"collect": func() { s.collect() },
			"engine":  func() { s.engine.step() },
			"deliver": func() { s.engine.deliver(sample(s, "kind", kinds)) },
			"view":    func() { s.engine.see(seen...) },
			"crash":   s.crash,
			"late":    s.arrive,
		}
		actions := []string{"collect", "collect", "collect", "engine", "engine", "engine", "deliver", "deliver", "view", "crash", "late"}
		for range uniform(32).Draw(t, "actions") {
			action, times := steps[sample(s, "action", actions)], 1+uniform(8).Draw(t, "times")
			for range times {
				action()
			}
		}
		s.converge()
		s.lateSet = upgraded
		s.checkConverged()
	})
}

func newSimulation(t *rapid.T, remote bool) *simulation {
	s := &simulation{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), chaos: true, moved: uniform(4).Draw(t, "moved") == 3, stuck: uniform(4).Draw(t, "stuck") == 3,
		remote: remote, retain: uniform(4).Draw(t, "retain") == 3, manual: uniform(3).Draw(t, "manual") == 2, rollback: uniform(3).Draw(t, "rollback") == 2,
		past: map[objects.Key][]moment{}, denied: map[objects.Key]bool{}, absent: map[string]bool{}, lost: map[right]bool{},
		restoration: newRestoration(), lateMade: map[types.UID]bool{}, stripped: map[types.UID]bool{}, engineMade: map[types.UID]bool{}, loose: map[types.UID]bool{},
	}
	s.newServer()
	s.engine = newProcess(s)
	return s
}

// uniform draws numbers below n, all of them equally often: rapid prefers small ones, so that few
// of many actions would ever be drawn.
func uniform(n int) *rapid.Generator[int] {
	return rapid.Custom(func(t *rapid.T) int {
		v := 0
		for range bits.Len(uint(n)) + 2 {
			v <<= 1
			if rapid.Bool().Draw(t, "bit") {
				v |= 1
			}
		}
		return v % n
	})
}

// sample draws one of the values.
func sample[T any](s *simulation, label string, values []T) T {
	return values[uniform(len(values)).Draw(s.t, label)]
}

// work are the actions that make progress, with their weights; trouble are the disturbing ones.
var (
	work    = map[string]int{"engine": 40, "deliver": 16, "deliver all": 4, "sync": 4, "view": 4, "wait": 4, "heal": 10, "calm": 5}
	trouble = []string{
		"account", "activate", "activate", "add account", "allow", "automatic", "manual", "reject", "retry", "collect", "crash", "delete", "delete deployment", "delete set", "deny", "drift", "finalize", "finalizer", "forbid",
		"late", "leave", "occupy", "pause", "permit", "raise", "release", "remove account", "rollback", "serve", "sicken", "steal", "strip label", "strip reference",
		"template", "unpause", "unserve",
		"target away", "target back", "target session", "home away", "home back",
		"backup", "restore home", "restore target",
	}
)

// weights draws the actions of one run. Each run leaves much of the trouble out, so that the rest
// is drawn often enough.
func (s *simulation) weights() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(work)) {
		all = append(all, slices.Repeat([]string{name}, work[name])...)
	}
	for _, name := range trouble {
		weight := rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(s.t, name)
		all = append(all, slices.Repeat([]string{name}, weight)...)
	}
	return append([]string{"engine"}, all...) // failures shrink to the first
}

func (s *simulation) act(name string) {
	switch name {
	case "engine":
		s.engine.step()
	case "deliver":
		s.engine.deliver(sample(s, "kind", kinds))
	case "deliver all":
		s.deliverAll()
	case "sync":
		s.engine.sync(sample(s, "kind", kinds))
	case "view":
		s.engine.see(sample(s, "kinds", [][]string{nil, {"ObjectDeployment"}, {"ObjectSet"}})...)
	case "wait":
		d := sample(s, "wait", []time.Duration{50 * time.Millisecond, 2 * time.Second, 31 * time.Second, 6 * time.Minute})
		if d >= limits.FreshRemembered/2 {
			s.engine.see() // own writes are remembered until then
		}
		s.now = s.now.Add(d)
		if d > 15*time.Second { // as long as a list is awaited
			for _, gk := range kinds {
				s.engine.cluster.Slow(gk)
			}
		}
	case "calm":
		s.calm()
	case "crash":
		s.crash()
	case "late":
		s.arrive()
	case "serve":
		s.serve()
	case "unserve":
		s.unserve()
	case "target away", "target back", "target session", "home away", "home back":
		s.reach(name)
	case "backup":
		s.save()
	case "restore home":
		s.restoreHome()
	case "restore target":
		s.restoreTarget()
	case "add account", "remove account", "forbid", "permit":
		s.grant(name)
	case "heal", "sicken":
		s.disturb(name, sample(s, "key", slices.DeleteFunc(slices.Clone(universe), func(k objects.Key) bool { return !probed(k) })))
	case "drift", "strip reference", "strip label", "steal", "delete", "occupy", "leave", "finalizer", "finalize", "deny", "allow":
		s.disturb(name, sample(s, "key", universe))
	default:
		s.use(name)
	}
}

// calm is a period without trouble: watches keep up and all objects become healthy.
func (s *simulation) calm() {
	for range 10 * uniform(8).Draw(s.t, "steps") {
		for _, gk := range kinds {
			s.engine.sync(gk)
		}
		s.deliverAll()
		s.engine.see()
		for _, key := range universe {
			s.disturb("heal", key)
		}
		if !s.engine.step() {
			return
		}
	}
}

// fault decides the fate of a request.
func (s *simulation) fault() string {
	if !s.chaos {
		return ""
	}
	switch uniform(30).Draw(s.t, "fault") {
	case 29:
		return "lost"
	case 28:
		return "refused"
	}
	return ""
}

// reach changes the connections to target and home. A session ends only between passes.
func (s *simulation) reach(name string) {
	if !s.remote || s.engine.resume != nil && name == "target session" {
		return
	}
	s.logf("%s", name)
	switch name {
	case "target away":
		s.away = true
	case "target back":
		s.away = false
	case "target session":
		s.engine.connect()
	case "home away":
		s.ownAway = true
	case "home back":
		s.ownAway = false
	}
	s.engine.woken = true
}

func (s *simulation) crash() {
	pending := s.pending
	s.engine.crash()
	s.pending = nil
	s.logf("crash")
	if pending != nil && rapid.Bool().Draw(s.t, "still arrives") {
		s.flying = append(s.flying, *pending)
	}
	s.engine = newProcess(s)
}

// arrive lets a write of a crashed engine take effect.
func (s *simulation) arrive() {
	if len(s.flying) == 0 {
		return
	}
	write := s.flying[0]
	s.flying = s.flying[1:]
	from := s.server.Version()
	s.late = true
	err := write.do()
	s.late = false
	s.logf("a write of a crashed engine arrives: %v", err)
	for _, key := range s.keys() {
		if o := s.get(key); o.version > from {
			s.lateMade[o.uid] = true
		}
	}
}

func (s *simulation) deliverAll() bool {
	some := false
	for _, gk := range kinds {
		for s.engine.deliver(gk) {
			some = true
		}
	}
	return some
}

// disturb performs an action of another client on objects.
func (s *simulation) disturb(name string, key objects.Key) {
	o := s.get(key)
	if name == "deny" || name == "allow" {
		if s.denied[key] == (name == "deny") {
			return
		}
		s.denied[key] = name == "deny"
		s.logf("%s %s", name, key)
		return
	}
	if name == "heal" && !probed(key) {
		return
	}
	if (o == nil) != (name == "occupy") || !s.server.Serves(key.GroupKind()) || (name == "heal" || name == "sicken") && o.healthy == (name == "heal") {
		return
	}
	rival := []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Rival", Name: "rival", UID: rivalUID, Controller: ptr.To(true)}}
	s.logf("%s %s", name, key)
	edit := func(change func(*unstructured.Unstructured)) {
		if _, err := s.server.Edit(key, "other", change); err != nil {
			s.failf("%s %s: %v", name, key, err)
		}
	}
	switch name {
	case "heal", "sicken":
		s.report(key, name == "heal")
	case "drift":
		edit(func(u *unstructured.Unstructured) {
			spec := u.Object["spec"].(map[string]any)
			spec["value"] = "drift"
			if from := uniform(3).Draw(s.t, "side"); from < len(sides) && spec[sides[from]] != nil { // to the other one
				delete(spec, sides[from])
				delete(spec, inmemory.DefaultOf(sides[from]))
				spec[sides[1-from]] = "theirs"
			}
		})
	case "strip reference":
		edit(func(u *unstructured.Unstructured) {
			u.SetOwnerReferences(nil)
			annotations := u.GetAnnotations()
			delete(annotations, corev1alpha1.OwnersAnnotation)
			u.SetAnnotations(annotations)
		})
		s.stripped[o.uid] = true
	case "strip label":
		edit(func(u *unstructured.Unstructured) {
			labels := u.GetLabels()
			delete(labels, corev1alpha1.CacheLabel)
			u.SetLabels(labels)
		})
	case "steal":
		delete(s.orphaned, o.uid) // it stays behind with its new controller
		edit(func(u *unstructured.Unstructured) { u.SetOwnerReferences(rival) })
	case "occupy":
		s.occupy(key, rival)
	case "finalizer":
		edit(func(u *unstructured.Unstructured) {
			if u.GetDeletionTimestamp() == nil {
				u.SetFinalizers([]string{"example.com/hold"})
			}
		})
	case "finalize":
		edit(func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	case "delete", "leave":
		if name == "delete" || !s.ours(o) {
			s.end(key)
		}
	}
}

// report performs a status update by the controller of an object.
func (s *simulation) report(key objects.Key, healthy bool) {
	_, err := s.server.Edit(key, "", func(u *unstructured.Unstructured) {
		value, _, _ := unstructured.NestedString(u.Object, "spec", "value")
		condition := "True"
		if !healthy {
			value, condition = "sick", "False"
		}
		u.Object["status"] = map[string]any{
			"observedGeneration": u.GetGeneration(), "value": value,
			"conditions": []any{map[string]any{"type": "Available", "status": condition}},
		}
	})
	if err != nil {
		s.failf("report of %s: %v", key, err)
	}
}

// occupy makes an object of others.
func (s *simulation) occupy(key objects.Key, rival []metav1.OwnerReference) {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": "foreign"}}}
	u.SetGroupVersionKind(key.GroupKind().WithVersion("v1"))
	if rapid.Bool().Draw(s.t, "controlled") {
		u.SetOwnerReferences(rival)
	}
	if name := rapid.SampledFrom([]string{"", "", "app", adopter}).Draw(s.t, "adoptable"); name != "" {
		u.SetAnnotations(map[string]string{corev1alpha1.AdoptableByAnnotation: name})
	}
	terminating := false
	if rapid.Bool().Draw(s.t, "held") {
		u.SetFinalizers([]string{"example.com/hold"})
		terminating = rapid.Bool().Draw(s.t, "terminating")
	}
	if _, err := s.server.Create(key, u, "other"); err != nil {
		s.failf("occupy %s: %v", key, err)
	}
	s.report(key, true)
	if terminating {
		s.end(key)
	}
}

// end deletes an object in any state.
func (s *simulation) end(key objects.Key) {
	if _, err := s.serverOf(key).Delete(key, "", ""); err != nil {
		s.failf("delete %s: %v", key, err)
	}
}

// serve serves all kinds.
func (s *simulation) serve() {
	for _, gk := range kinds {
		if !s.server.Serves(gk) {
			s.server.Serve(gk, true)
			s.engine.cluster.KindChanged(gk)
		}
	}
}

// unserve takes the API of jobs away, and with it all of them.
func (s *simulation) unserve() {
	if uniform(5).Draw(s.t, "really") < 4 {
		return
	}
	gk := kinds[2]
	s.logf("unserve %s", gk)
	s.server.Serve(gk, false)
	s.engine.cluster.Reset(gk)
}

// use performs an action of the deployment's user.
func (s *simulation) use(name string) {
	if name == "collect" {
		s.collect()
		return
	}
	if s.deleting {
		return
	}
	switch name {
	case "account":
		next := s.newAccount()
		name += " " + next.String()
		s.editDeployment(func(d *corev1alpha1.ObjectDeployment) { d.Spec.Template.Spec = next.spec() })
	case "template", "rollback":
		next := sample(s, "template", s.templates)
		if name == "template" {
			next = s.newTemplate()
		}
		name += " " + next.String()
		s.editDeployment(func(d *corev1alpha1.ObjectDeployment) { d.Spec.Template.Spec = next.spec() })
	case "release":
		release := sample(s, "release", []string{"1", "2", "3"})
		name += " " + release
		s.editDeployment(func(d *corev1alpha1.ObjectDeployment) { d.Labels[corev1alpha1.PackageInstanceLabel] = release })
	case "manual", "automatic":
		s.editDeployment(func(d *corev1alpha1.ObjectDeployment) {
			d.Spec.RevisionActivationPolicy = map[string]corev1alpha1.RevisionActivationPolicy{"manual": corev1alpha1.RevisionActivationManual}[name]
		})
	case "activate":
		if len(s.sets) > 0 {
			one := sample(s, "set", s.sets)
			name += " " + one.name
			s.activate(one)
		}
	case "raise":
		if len(s.sets) > 0 {
			one := sample(s, "set", s.sets)
			name += " " + one.name
			s.editSet(one, func(set *corev1alpha1.ObjectSet) {
				if set.Status.Revision > 0 {
					s.raised += 10 // the engine, too, gives out numbers
					set.Spec.Revision = s.highest() + s.raised
				}
			})
		}
	case "reject":
		if len(s.sets) > 0 {
			one := sample(s, "set", s.sets)
			name += " " + one.name
			s.editSet(one, func(set *corev1alpha1.ObjectSet) {
				objectsets.Annotate(set, corev1alpha1.RejectedAnnotation, "true")
			})
		}
	case "retry":
		s.retry()
	case "pause", "unpause":
		s.editDeployment(func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = name == "pause" })
	case "delete set":
		if len(s.sets) > 0 {
			gone := sample(s, "set", s.sets)
			s.setDeleted = true
			name += " " + gone.name
			s.end(setKey(gone))
		}
	case "delete deployment":
		if uniform(5).Draw(s.t, "really") < 4 {
			return
		}
		s.deleteDeployment(uniform(4).Draw(s.t, "orphan") == 3)
		return
	}
	s.logf("user: %s", name)
}

func (s *simulation) deleteDeployment(orphan bool) {
	s.logf("user: delete deployment, orphan: %t", orphan)
	s.deleting, s.inUse, s.kept = true, s.kindsInUse(), s.keepsRestored()
	if orphan {
		s.editDeployment(func(d *corev1alpha1.ObjectDeployment) {
			d.Finalizers = append(d.Finalizers, metav1.FinalizerOrphanDependents)
		})
		s.orphaned = map[types.UID]bool{}
		for _, key := range s.keys() {
			o := s.get(key)
			known := slices.ContainsFunc(s.sets, func(one *set) bool {
				w, _ := one.template.Find(key)
				retains := slices.ContainsFunc(o.owners, func(ref objects.Reference) bool { return ref.UID == one.uid })
				return w != nil && (!one.archived || retains) // other archived sets are not loaded
			})
			if known || s.ours(o) { // of others it does not know that they were its own
				s.orphaned[o.uid] = true
			}
		}
	}
	s.end(deploymentKeyOf)
}

// activate performs the activation of a set by a user: a set that is neither waiting nor history
// gets a number, which otherwise the engine assigns. Numbers of two sets can be equal; then the name
// decides which one is newer.
func (s *simulation) activate(one *set) {
	newest, highest := s.sets[len(s.sets)-1], s.highest()
	s.editSet(one, func(set *corev1alpha1.ObjectSet) {
		set.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateActive
		if !one.archived && !one.waiting && !one.lifecycleArchived && one != newest && set.Status.Revision > 0 { // else it takes effect before the engine sees it
			set.Spec.Revision = highest + 1
		}
	})
}

// highest returns the highest number that the engine knows of a set.
func (s *simulation) highest() (number int64) {
	for _, one := range s.sets {
		number = max(number, one.number)
	}
	return number
}

func (s *simulation) editSet(one *set, change func(*corev1alpha1.ObjectSet)) {
	if _, err := s.own.Edit(setKey(one), "", func(u *unstructured.Unstructured) {
		set := decode(u, &corev1alpha1.ObjectSet{})
		change(set)
		u.Object = encode(set).Object
	}); err != nil {
		s.failf("edit %s: %v", one.name, err)
	}
}

// retry ends rejections.
func (s *simulation) retry() {
	s.editDeployment(func(d *corev1alpha1.ObjectDeployment) {
		d.Annotations = map[string]string{corev1alpha1.RetryAnnotation: fmt.Sprint(s.own.Version())}
	})
}

func setKey(one *set) objects.Key {
	return objects.Key{Group: corev1alpha1.GroupVersion.Group, Kind: "ObjectSet", Namespace: "n", Name: one.name}
}

// collect plays the garbage collector at an orphaning delete: it removes references one by one,
// then releases the deployment. It reports whether there is more to do.
func (s *simulation) collect() bool {
	d := s.deployment()
	if d == nil || !objectsets.Orphaning(d) {
		return false
	}
	ours := func(ref metav1.OwnerReference) bool { return ref.UID == s.owner }
	for _, key := range slices.Concat(s.own.Keys(), s.server.Keys()) {
		if !slices.ContainsFunc(s.serverOf(key).Get(key).GetOwnerReferences(), ours) {
			continue
		}
		_, err := s.serverOf(key).Edit(key, "", func(u *unstructured.Unstructured) {
			u.SetOwnerReferences(slices.DeleteFunc(u.GetOwnerReferences(), ours))
		})
		if err != nil {
			s.failf("collect %s: %v", key, err)
		}
		return true
	}
	s.editDeployment(func(d *corev1alpha1.ObjectDeployment) {
		d.Finalizers = slices.DeleteFunc(d.Finalizers, func(f string) bool { return f == metav1.FinalizerOrphanDependents })
	})
	return false
}

// newTemplate draws a template, at times without any object of the one before. Objects keep their
// order in all templates unless they are allowed to move.
func (s *simulation) newTemplate() *template {
	t := &template{name: fmt.Sprintf("t%d", len(s.templates)+1), account: sample(s, "account", accounts), remote: s.remote}
	if s.remote {
		t.account = ""
	}
	keys := universe
	if s.moved {
		keys = rapid.Permutation(universe).Draw(s.t, "order")
	}
	modes := []corev1alpha1.CollisionProtection{
		corev1alpha1.CollisionProtectionPrevent, corev1alpha1.CollisionProtectionPrevent,
		corev1alpha1.CollisionProtectionIfNoController, corev1alpha1.CollisionProtectionNone,
	}
	if n := len(s.templates); n > 0 && uniform(4).Draw(s.t, "apart") == 3 {
		keys = slices.DeleteFunc(slices.Clone(keys), func(k objects.Key) bool { w, _ := s.templates[n-1].Find(k); return w != nil })
	}
	var phase []wanted
	for _, key := range keys {
		if uniform(3).Draw(s.t, "wanted") == 2 {
			continue
		}
		keep := key.Kind == "Config" && uniform(6).Draw(s.t, "keep") == 5
		value := sample(s, "value", []string{"1", "1.x", "2"})
		if keep {
			value += "+keep" // the annotation is content
		}
		phase = append(phase, wanted{key: key, value: value, keep: keep, collision: sample(s, "collision", modes)})
		if rapid.Bool().Draw(s.t, "cut") {
			t.phases, phase = append(t.phases, phase), nil
		}
	}
	if len(phase) > 0 || len(t.phases) == 0 {
		t.phases = append(t.phases, phase)
	}
	s.templates = append(s.templates, t)
	return t
}

const (
	// convergeSteps and convergeWaits bound how long the engine can take to converge once faults
	// have ended.
	convergeSteps = 3000
	convergeWaits = 120
)

// converge ends all faults and waits until the engine is idle.
func (s *simulation) converge() {
	s.logf("converge")
	s.chaos = false
	s.reach("target back")
	s.reach("home back")
	clear(s.denied)
	clear(s.absent)
	clear(s.lost)
	s.serve()
	if !s.deleting {
		s.editDeployment(func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused, d.Spec.OnDeadline = false, "" })
	}
	waits := 0
	for range convergeSteps {
		s.mend()
		if s.engine.step() {
			continue
		}
		if s.resolve() || s.collectDangling() {
			continue
		}
		if len(s.flying) > 0 {
			s.arrive()
			continue
		}
		if s.engine.due.IsZero() {
			if s.activateWanted() {
				continue
			}
			return
		}
		if waits++; waits > convergeWaits {
			break
		}
		if s.engine.due.After(s.now) {
			s.now = s.engine.due
		}
	}
	s.failf("the engine does not come to an end")
}

// mend makes objects healthy, and completes deletions that are in progress.
func (s *simulation) mend() {
	for s.collect() {
	}
	for _, key := range universe {
		if o := s.get(key); o != nil && o.terminating {
			s.disturb("finalize", key)
		}
		if s.stuck && key == universe[4] {
			continue
		}
		s.disturb("heal", key)
	}
	for _, gk := range kinds {
		s.engine.sync(gk)
	}
	s.deliverAll()
	s.engine.see()
}

// resolve simulates a user who removes obstacles as the messages suggest.
func (s *simulation) resolve() bool {
	if s.deleting {
		return false
	}
	done := false
	for _, set := range s.sets {
		if set.archived || set.deleting {
			continue
		}
		for _, ph := range set.template.phases {
			for _, w := range ph {
				if o := s.get(w.key); o != nil && (!s.ours(o) || s.unwritten(w.key)) {
					s.logf("user deletes %s", w.key)
					s.end(w.key)
					done = true
				}
			}
		}
	}
	return done
}

// unwritten reports whether a revision is refused for an object that names the deployment, which
// has never written it: a backup of objects brought it back without managedFields.
func (s *simulation) unwritten(key objects.Key) bool {
	refused := slices.ContainsFunc(s.engine.revisions(), func(r *engine.Revision) bool {
		return r.Refused() && strings.Contains(r.Blocked(), key.String()+": names ")
	})
	return refused || slices.ContainsFunc(s.storedSets(), func(set *corev1alpha1.ObjectSet) bool {
		return slices.ContainsFunc(set.Status.Blocking, func(b corev1alpha1.BlockingObject) bool {
			return b.Kind == key.Kind && b.Name == key.Name && strings.HasPrefix(b.Message, "names ")
		})
	})
}

// activateWanted is the user who activates the revision of the template, and retries
// rejected content.
func (s *simulation) activateWanted() bool {
	d := s.deployment()
	if s.deleting || d == nil {
		return false
	}
	if len(d.Status.Rejected) > 0 && d.Status.Rejected[0].Retry == d.Annotations[corev1alpha1.RetryAnnotation] {
		s.logf("user: retry")
		s.retry()
		return true
	}
	if d.Spec.RevisionActivationPolicy != corev1alpha1.RevisionActivationManual {
		return false
	}
	wants := func(one *set) bool {
		return one.template == s.templateOf(&d.Spec.Template.Spec) && one.release == d.Labels[corev1alpha1.PackageInstanceLabel]
	}
	active := s.newest()
	if active != nil && wants(active) {
		return false
	}
	if active != nil && !active.succeeded && !s.stuck {
		s.failf("%s is in charge while another one waits, and was not rolled out", active.name)
	}
	for _, one := range slices.Backward(s.sets) {
		if wants(one) && !one.deleting {
			s.logf("user: activate %s", one.name)
			s.activate(one)
			return true
		}
	}
	return false
}

// checkIdle checks invariant 5: an idle engine sends no requests, and a restart with all objects in
// place does not write.
func (s *simulation) checkIdle() {
	if s.deleting {
		return
	}
	before := s.requests
	s.engine.woken = true
	for s.engine.step() {
	}
	if s.requests != before {
		s.failf("%d requests at rest", s.requests-before)
	}
	before = s.writes
	s.engine.crash()
	s.engine = newProcess(s)
	s.converge()
	if active := s.newest(); s.writes != before && (!s.stuck || active.succeeded) { // labels gate no phase
		s.failf("%d writes after a restart with everything in place", s.writes-before)
	}
	s.checkConverged()
}
