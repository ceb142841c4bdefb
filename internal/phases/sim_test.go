package phases_test

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
)

// simulation is a cluster, the engine, and everybody else. Every draw is
// rapid's, so that a failure shrinks and its seed repeats it.
type simulation struct {
	t      *rapid.T
	c      *cluster
	engine *engine
	// chaos lets requests fail; moved lets objects change between phases, where
	// the orders of two revisions may contradict each other.
	chaos, moved bool
	// setDeleted means that the user deleted a set: what its labels were is lost.
	setDeleted bool
	// stuck keeps one object from ever getting healthy.
	stuck bool
	// late is set while a write of a crashed engine arrives; lateMade are objects
	// that such writes made or changed.
	late     bool
	lateMade map[types.UID]bool
	// orphaned are the objects that stay behind an orphaning delete; nil where there
	// was none.
	orphaned map[types.UID]bool
	// stripped are objects that did not say any more that they are ours.
	stripped map[types.UID]bool
	flying   []func() error // writes of crashed engines that are still to arrive
	pending  func() error   // the write under way

	// inside is set while the engine's pass runs; failure is what went wrong in it.
	inside  bool
	failure string

	templates        []*template
	requests, writes int
	yield            func(string) bool
}

// App and Job are probed, Config is not.
var kinds = []schema.GroupKind{{Kind: "App"}, {Kind: "Config"}, {Kind: "Job"}}

// universe are all objects that templates are made of.
var universe = []objects.Key{
	{Kind: "Config", Name: "a", Namespace: "n"}, {Kind: "App", Name: "b", Namespace: "n"}, {Kind: "Job", Name: "c", Namespace: "n"},
	{Kind: "Config", Name: "d", Namespace: "n"}, {Kind: "App", Name: "e", Namespace: "n"}, {Kind: "Config", Name: "f", Namespace: "n"},
}

// TestEngine runs the engine against a cluster in which everything goes wrong
// that may go wrong, checks the invariants of docs/development.md in every write, and
// at last, with no more faults, that the end is that of a run without any.
func TestEngine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &simulation{
			t: t, c: newCluster(), chaos: true, moved: uniform(4).Draw(t, "moved") == 3, lateMade: map[types.UID]bool{}, stripped: map[types.UID]bool{},
			stuck: uniform(4).Draw(t, "stuck") == 3,
		}
		s.c.deployment.template = s.newTemplate()
		s.engine = newEngine(s)
		defer func() { s.engine.crash() }()
		actions := s.weights()
		for range 20 * uniform(16).Draw(t, "actions") {
			s.act(sample(s, "action", actions))
		}
		s.settle()
		s.checkSettled()
		s.checkIdle()
	})
}

// uniform draws numbers below n, all of them equally often: rapid prefers small
// ones, and few of many actions would ever be met.
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

// work are the actions by which things get on, with their weights; trouble are
// those that disturb.
var (
	work    = map[string]int{"engine": 40, "deliver": 16, "deliver all": 4, "sync": 4, "view": 4, "wait": 4, "heal": 10, "calm": 5}
	trouble = []string{
		"allow", "collect", "crash", "delete", "delete deployment", "delete set", "deny", "drift", "finalize", "finalizer",
		"late", "leave", "occupy", "pause", "release", "rollback", "serve", "sicken", "steal", "strip label", "strip reference",
		"template", "unpause", "unserve",
	}
)

// weights draws the actions of one run. Each run leaves much of the trouble out,
// so that the rest comes often enough to meet.
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
		s.see()
	case "wait":
		s.c.now = s.c.now.Add(sample(s, "wait", []time.Duration{50 * time.Millisecond, 2 * time.Second, 31 * time.Second, 6 * time.Minute}))
	case "calm":
		s.calm()
	case "crash":
		s.crash()
	case "late":
		s.arrive()
	case "serve":
		clear(s.c.unserved)
	case "unserve":
		s.unserve()
	case "heal", "sicken":
		s.disturb(name, sample(s, "key", slices.DeleteFunc(slices.Clone(universe), func(k objects.Key) bool { return !probed(k) })))
	case "drift", "strip reference", "strip label", "steal", "delete", "occupy", "leave", "finalizer", "finalize", "deny", "allow":
		s.disturb(name, sample(s, "key", universe))
	default:
		s.use(name)
	}
}

// calm is a stretch in which watches keep up and everything gets healthy.
func (s *simulation) calm() {
	for range 10 * uniform(8).Draw(s.t, "steps") {
		for _, gk := range kinds {
			s.engine.sync(gk)
		}
		s.deliverAll()
		s.see()
		for _, key := range universe {
			s.disturb("heal", key)
		}
		if !s.engine.step() {
			return
		}
	}
}

// fault decides what becomes of a request.
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

func (s *simulation) crash() {
	pending := s.pending
	s.engine.crash()
	s.pending = nil
	s.c.logf("crash")
	if pending != nil && rapid.Bool().Draw(s.t, "still arrives") {
		s.flying = append(s.flying, pending)
	}
	s.engine = newEngine(s)
}

// arrive lets a write of a crashed engine take effect.
func (s *simulation) arrive() {
	if len(s.flying) == 0 {
		return
	}
	write := s.flying[0]
	s.flying = s.flying[1:]
	from := s.c.version
	s.late = true
	err := write()
	s.late = false
	s.c.logf("a write of a crashed engine arrives: %v", err)
	for _, key := range s.c.keys() {
		if o := s.c.get(key); o.version > from {
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

// see shows the engine the deployment as it is.
func (s *simulation) see() {
	if s.engine.view != s.c.deployment {
		s.engine.view = s.c.deployment
		s.engine.woken = true
	}
}

// disturb is what others do to objects.
func (s *simulation) disturb(name string, key objects.Key) {
	o := s.c.get(key)
	if name == "deny" || name == "allow" {
		if s.c.denied[key] == (name == "deny") {
			return
		}
		s.c.denied[key] = name == "deny"
		s.c.logf("%s %s", name, key)
		return
	}
	if name == "heal" && !probed(key) {
		return
	}
	if (o == nil) != (name == "occupy") || s.c.unserved[key.GroupKind()] {
		return
	}
	next := thing{uid: s.c.uid(), value: "foreign", healthy: true}
	if o != nil {
		next = *o
	}
	switch name {
	case "heal", "sicken":
		if next.healthy = name == "heal"; next.healthy == o.healthy {
			return
		}
	case "drift":
		next.value = "drift"
	case "strip reference":
		next.owners = nil
		s.stripped[o.uid] = true
	case "strip label":
		next.labelled = false
	case "steal":
		delete(s.orphaned, o.uid) // it stays behind with its new controller
		next.owners = []metav1.OwnerReference{{Kind: "Rival", Name: "rival", UID: rivalUID, Controller: ptr.To(true)}}
	case "occupy":
		if rapid.Bool().Draw(s.t, "controlled") {
			next.owners = []metav1.OwnerReference{{Kind: "Rival", Name: "rival", UID: rivalUID, Controller: ptr.To(true)}}
		}
		if rapid.Bool().Draw(s.t, "held") {
			next.finalizers, next.terminating = []string{"example.com/hold"}, rapid.Bool().Draw(s.t, "terminating")
		}
	case "finalizer":
		next.finalizers = []string{"example.com/hold"}
	case "finalize":
		next.finalizers = nil
	case "delete", "leave":
		if name == "leave" && o.controller() == ownerUID {
			return
		}
		s.c.logf("%s %s", name, key)
		s.c.end(key)
		return
	}
	s.c.logf("%s %s", name, key)
	if next.terminating && len(next.finalizers) == 0 {
		s.c.put(key, nil)
		return
	}
	s.c.put(key, &next)
}

// unserve takes the API of jobs away, and with it all of them.
func (s *simulation) unserve() {
	if uniform(5).Draw(s.t, "really") < 4 {
		return
	}
	gk := kinds[2]
	s.c.logf("unserve %s", gk)
	for _, key := range s.c.keys() {
		if key.GroupKind() == gk {
			s.c.put(key, nil)
		}
	}
	s.c.unserved[gk] = true
	s.engine.watches[gk], s.engine.woken = newWatch(), true
}

// use is what the user of the deployment does.
func (s *simulation) use(name string) {
	d := &s.c.deployment
	if name == "collect" {
		s.collect()
		return
	}
	if d.deleting {
		return
	}
	switch name {
	case "template":
		d.template = s.newTemplate()
	case "rollback":
		d.template = sample(s, "template", s.templates)
	case "release":
		d.release = sample(s, "release", []string{"1", "2", "3"})
	case "pause", "unpause":
		d.paused = name == "pause"
	case "delete set":
		if len(s.c.sets) > 0 {
			set := sample(s, "set", s.c.sets)
			set.deleting, s.setDeleted = true, true
			s.engine.woken = true
			name += " " + set.name
		}
	case "delete deployment":
		if uniform(5).Draw(s.t, "really") < 4 {
			return
		}
		if d.deleting, d.orphaning = true, uniform(4).Draw(s.t, "orphan") == 3; d.orphaning {
			s.orphaned = map[types.UID]bool{}
			for _, key := range s.c.controlled() {
				s.orphaned[s.c.get(key).uid] = true
			}
		}
		name += fmt.Sprintf(", orphan: %t", d.orphaning)
	}
	s.c.logf("user: %s: %s release %s", name, d.template, d.release)
}

// collect is the garbage collector at an orphaning delete: it takes references
// off one by one, then lets the deployment go.
func (s *simulation) collect() {
	if !s.c.deployment.orphaning {
		return
	}
	if keys := s.c.controlled(); len(keys) > 0 {
		next := *s.c.get(keys[0])
		next.owners = slices.DeleteFunc(slices.Clone(next.owners), func(ref metav1.OwnerReference) bool { return ref.UID == ownerUID })
		s.c.put(keys[0], &next)
		return
	}
	s.c.deployment.orphaning = false
}

func (s *simulation) setByUID(uid types.UID) *set {
	for _, set := range s.c.sets {
		if set.uid == uid {
			return set
		}
	}
	return nil
}

func (s *simulation) createSet(number int64, tmpl *template, release string) *set {
	s.wrote()
	made := &set{
		name: fmt.Sprintf("app-%d", number), uid: s.c.uid(), number: number, template: tmpl, release: release,
		first: len(s.c.sets) == 0, since: proof{}, made: s.c.version + 1,
	}
	for _, gk := range kinds {
		made.since[gk] = s.engine.watches[gk].seen
	}
	s.c.sets = append(s.c.sets, made)
	return made
}

func (s *simulation) removeSet(gone *set) {
	s.c.sets = slices.DeleteFunc(s.c.sets, func(o *set) bool { return o == gone })
}

// newTemplate draws a template. Objects keep their order in all templates
// unless they may move.
func (s *simulation) newTemplate() *template {
	t := &template{name: fmt.Sprintf("t%d", len(s.templates)+1)}
	keys := universe
	if s.moved {
		keys = rapid.Permutation(universe).Draw(s.t, "order")
	}
	modes := []corev1alpha1.CollisionProtection{
		corev1alpha1.CollisionProtectionPrevent, corev1alpha1.CollisionProtectionPrevent,
		corev1alpha1.CollisionProtectionIfNoController, corev1alpha1.CollisionProtectionNone,
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
	// settleSteps and settleWaits bound how long the engine may take to get done
	// once nobody disturbs it.
	settleSteps = 3000
	settleWaits = 120
)

// settle ends all faults and waits until the engine has nothing left to do.
func (s *simulation) settle() {
	s.c.logf("settle")
	s.chaos = false
	clear(s.c.denied)
	clear(s.c.unserved)
	s.c.deployment.paused = false
	waits := 0
	for range settleSteps {
		s.mend()
		if s.engine.step() {
			continue
		}
		if s.resolve() {
			continue
		}
		if len(s.flying) > 0 {
			s.arrive()
			continue
		}
		if s.engine.due.IsZero() {
			return
		}
		if waits++; waits > settleWaits {
			break
		}
		if s.engine.due.After(s.c.now) {
			s.c.now = s.engine.due
		}
	}
	s.failf("the engine does not come to an end")
}

// mend lets everything get healthy and go that is on its way.
func (s *simulation) mend() {
	for s.c.deployment.orphaning {
		s.collect()
	}
	for _, key := range universe {
		if o := s.c.get(key); o != nil && o.terminating {
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
	s.see()
}

// resolve is the user who removes what stands in the way, as the messages say.
func (s *simulation) resolve() bool {
	if s.c.deployment.deleting {
		return false
	}
	done := false
	for _, set := range s.c.sets {
		if set.archived || set.deleting {
			continue
		}
		for _, ph := range set.template.phases {
			for _, w := range ph {
				if o := s.c.get(w.key); o != nil && o.controller() != ownerUID {
					s.c.logf("user deletes %s", w.key)
					s.c.end(w.key)
					done = true
				}
			}
		}
	}
	return done
}

// checkIdle checks invariant 5: nothing to do costs nothing, and a restart with
// everything in place writes nothing.
func (s *simulation) checkIdle() {
	if s.c.deployment.deleting {
		return
	}
	before := s.requests
	s.engine.woken = true
	for s.engine.step() {
	}
	if s.requests != before {
		s.failf("%d requests with nothing to do", s.requests-before)
	}
	before = s.writes
	s.engine.crash()
	s.engine = newEngine(s)
	s.settle()
	if active := s.c.newest(); s.writes != before && (!s.stuck || active.succeeded) { // labels gate no phase
		s.failf("%d writes after a restart with everything in place", s.writes-before)
	}
	s.checkSettled()
}
