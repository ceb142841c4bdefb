package phases_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
)

// cluster is an API server in a few lines: objects with the guards that the
// engine relies on, and one ordered stream of events per kind.
type cluster struct {
	now        time.Time
	version    int // the last resource version
	uids       int
	objects    map[objects.Key]thing
	events     map[schema.GroupKind][]event
	past       map[objects.Key][]moment
	denied     map[objects.Key]bool // a webhook refuses writes of them
	unserved   map[schema.GroupKind]bool
	engineMade map[types.UID]bool // objects that the engine created or took over

	deployment deployment
	sets       []*set
	// log is what happened, for the report of a failure.
	log []string
}

// thing is one state of an object. It is never changed in place.
type thing struct {
	uid     types.UID
	version int
	// value is all content but the release label: what the template says, or what
	// somebody made of it.
	value, release string
	// fixed is a part of the template's value that cannot be changed.
	fixed       string
	revision    int64 // by the annotation of the last write
	labelled    bool  // with the label of the watch
	wrote       bool  // managedFields hold an entry of ours
	keep        bool  // annotated with deletion-policy: Keep
	owners      []metav1.OwnerReference
	healthy     bool
	terminating bool
	finalizers  []string
}

func (o *thing) controller() types.UID {
	for _, ref := range o.owners {
		if ptr.Deref(ref.Controller, false) {
			return ref.UID
		}
	}
	return ""
}

func (o *thing) String() string {
	if o == nil {
		return "absent"
	}
	return fmt.Sprintf("%s@%d %s/%s by %q label=%t healthy=%t terminating=%t %v",
		o.uid, o.version, o.value, o.release, o.controller(), o.labelled, o.healthy, o.terminating, o.finalizers)
}

// event is what a watch limited to the label delivers; obs is nil where the
// object left the watch.
type event struct {
	version int
	key     objects.Key
	obs     *thing
	uid     types.UID
}

// moment is the state of an object from a resource version on.
type moment struct {
	version int
	obs     *thing
}

// deployment is the owner of everything.
type deployment struct {
	uid      types.UID
	template *template
	release  string
	paused   bool
	deleting bool
	// orphaning is the collector's finalizer: the objects stay.
	orphaning bool
	gone      bool
}

// set is a revision as the API server stores it.
type set struct {
	name              string
	uid               types.UID
	number            int64
	template          *template
	release           string
	first             bool  // no set was there when it was made
	since             proof // what the watches had shown when it was made
	made              int   // the version of the next change when it was made
	proven            int   // the version at which what the watches showed was proven
	claimed           bool
	opened            int // phases that may be written: what is recorded, or follows from it
	begun             int // phases that had begun, by the status
	ready             int // phases that were complete, by the status
	succeeded         bool
	archived          bool // the condition
	paused            bool // by the deployment
	deleting          bool
	lifecycleArchived bool
}

// template is what a revision contains.
type template struct {
	name   string
	phases [][]wanted
}

// claim records that all objects are claimed, and that the first phase is open.
func (s *set) claim() {
	s.claimed, s.begun = true, max(s.begun, min(1, len(s.template.phases)))
	s.opened = max(s.opened, s.begun)
	if s.first {
		s.opened = max(s.opened, s.template.ahead())
	}
}

// succeed records that the revision was available.
func (s *set) succeed() {
	s.succeeded, s.opened, s.begun, s.ready = true, len(s.template.phases), len(s.template.phases), len(s.template.phases)
}

// ahead is how many phases are open from the claim on: the first one, and those
// behind phases of which nothing is probed.
func (t *template) ahead() int {
	for i, ph := range t.phases {
		if slices.ContainsFunc(ph, func(w wanted) bool { return probed(w.key) }) {
			return i + 1
		}
	}
	return len(t.phases)
}

// fixed is what of a Job cannot be changed: it says on-immutable: Recreate.
func (w *wanted) fixed() string {
	if w.key.Kind != "Job" {
		return ""
	}
	return w.value[:1]
}

// wanted is one object of a template.
type wanted struct {
	key       objects.Key
	value     string
	keep      bool
	collision corev1alpha1.CollisionProtection
}

func (t *template) Find(key objects.Key) (*wanted, int) {
	for ph := range t.phases {
		for i := range t.phases[ph] {
			if t.phases[ph][i].key == key {
				return &t.phases[ph][i], ph
			}
		}
	}
	return nil, 0
}

func (t *template) String() string {
	var b strings.Builder
	b.WriteString(t.name)
	for _, ph := range t.phases {
		b.WriteString(" [")
		for i, w := range ph {
			if i > 0 {
				b.WriteString(" ")
			}
			fmt.Fprintf(&b, "%s/%s=%s", w.key.Kind, w.key.Name, w.value)
			if w.keep {
				b.WriteString("(keep)")
			}
		}
		b.WriteString("]")
	}
	return b.String()
}

var (
	errConflict  = errors.New("409 the object has been modified")
	errReplaced  = errors.New("422 metadata.uid")
	errImmutable = errors.New("422 field is immutable")
	errBlocked   = errors.New("403 admission webhook denied the request")
	errRetry     = errors.New("the connection was lost")
)

const (
	ownerUID = types.UID("deployment")
	rivalUID = types.UID("rival")
)

func newCluster() *cluster {
	return &cluster{
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), version: 1,
		objects: map[objects.Key]thing{}, events: map[schema.GroupKind][]event{}, past: map[objects.Key][]moment{},
		denied: map[objects.Key]bool{}, unserved: map[schema.GroupKind]bool{}, engineMade: map[types.UID]bool{},
		deployment: deployment{uid: ownerUID, release: "1"},
	}
}

func (c *cluster) logf(format string, args ...any) {
	c.log = append(c.log, fmt.Sprintf("%5d ", c.version)+fmt.Sprintf(format, args...))
}

func (c *cluster) get(key objects.Key) *thing {
	if o, ok := c.objects[key]; ok {
		return &o
	}
	return nil
}

// put stores a new state of an object, nil for its end.
func (c *cluster) put(key objects.Key, next *thing) *thing {
	before := c.get(key)
	c.version++
	if next != nil {
		next.version = c.version
		c.objects[key] = *next
	} else {
		delete(c.objects, key)
	}
	c.past[key] = append(c.past[key], moment{c.version, next})
	gk := key.GroupKind()
	if before != nil && before.labelled && (next == nil || !next.labelled || next.uid != before.uid) {
		c.events[gk] = append(c.events[gk], event{version: c.version, key: key, uid: before.uid})
	}
	if next != nil && next.labelled {
		c.events[gk] = append(c.events[gk], event{version: c.version, key: key, obs: next, uid: next.uid})
	}
	return next
}

// at returns what the object was at a resource version.
func (c *cluster) at(key objects.Key, version int) *thing {
	var obs *thing
	for _, m := range c.past[key] {
		if m.version <= version {
			obs = m.obs
		}
	}
	return obs
}

// was reports whether an object was once, at a version or after it, as ok says.
func (c *cluster) was(key objects.Key, version int, ok func(*thing) bool) bool {
	if ok(c.at(key, version)) {
		return true
	}
	return slices.ContainsFunc(c.past[key], func(m moment) bool { return m.version > version && ok(m.obs) })
}

func (c *cluster) uid() types.UID {
	c.uids++
	return types.UID("u" + strconv.Itoa(c.uids))
}

// guard names the one state that a write is meant for; the zero guard is for an
// absent object.
type guard struct {
	uid     types.UID
	version string
}

// apply is a server-side apply with force.
func (c *cluster) apply(key objects.Key, g guard, w *wanted, release string, revision int64, dryRun bool) (*thing, error) {
	before := c.get(key)
	switch {
	case g.uid == "" && before != nil, g.uid != "" && before == nil:
		return nil, errConflict
	case before != nil && before.uid != g.uid:
		return nil, errReplaced
	case before != nil && strconv.Itoa(before.version) != g.version:
		return nil, errConflict
	case c.denied[key]:
		return nil, errBlocked
	case before != nil && before.controller() == ownerUID && before.fixed != "" && before.fixed != w.fixed():
		return nil, errImmutable
	case c.unserved[key.GroupKind()]:
		return nil, errRetry
	}
	next := thing{healthy: !probed(key)}
	if before != nil {
		next = *before
		next.owners = nil
		for _, ref := range before.owners {
			if ref.UID != ownerUID {
				ref.Controller = ptr.To(false)
				next.owners = append(next.owners, ref)
			}
		}
		if before.value != w.value && probed(key) {
			next.healthy = false
		}
	}
	next.fixed = w.fixed()
	next.value, next.release, next.revision, next.keep, next.labelled, next.wrote = w.value, release, revision, w.keep, true, true
	next.owners = append(next.owners, metav1.OwnerReference{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "app", UID: ownerUID, Controller: ptr.To(true),
	})
	if before != nil && same(before, &next) {
		return before, nil
	}
	if dryRun {
		return &next, nil
	}
	if before == nil {
		next.uid = c.uid()
	}
	return c.put(key, &next), nil
}

func same(a, b *thing) bool {
	return a.value == b.value && a.release == b.release && a.revision == b.revision && a.labelled == b.labelled && a.keep == b.keep &&
		a.controller() == b.controller() && len(a.owners) == len(b.owners)
}

// remove is a DELETE with uid and resource version. It returns the object where
// finalizers hold it.
func (c *cluster) remove(key objects.Key, g guard) (*thing, error) {
	before := c.get(key)
	switch {
	case before == nil:
		return nil, nil
	case before.uid != g.uid || strconv.Itoa(before.version) != g.version:
		return nil, errConflict
	}
	return c.end(key), nil
}

// end deletes an object whatever its state is.
func (c *cluster) end(key objects.Key) *thing {
	before := c.get(key)
	if len(before.finalizers) == 0 {
		c.put(key, nil)
		return nil
	}
	if before.terminating {
		return before
	}
	next := *before
	next.terminating = true
	return c.put(key, &next)
}

// release takes our marks off.
func (c *cluster) release(key objects.Key, seen *thing) error {
	before := c.get(key)
	if before == nil || before.version != seen.version {
		return errConflict
	}
	if !before.labelled && before.controller() != ownerUID {
		return nil
	}
	next := *before
	next.labelled = false
	next.owners = slices.DeleteFunc(slices.Clone(before.owners), func(ref metav1.OwnerReference) bool { return ref.UID == ownerUID })
	c.put(key, &next)
	return nil
}

// keys returns the keys of all objects in order.
func (c *cluster) keys() []objects.Key {
	return slices.SortedFunc(maps.Keys(c.objects), objects.Key.Compare)
}

// controlled returns the keys of all objects that the deployment controls.
func (c *cluster) controlled() []objects.Key {
	return slices.DeleteFunc(c.keys(), func(k objects.Key) bool { return c.get(k).controller() != ownerUID })
}

// newest returns the newest set that is not removed, or nil.
func (c *cluster) newest() *set {
	for _, s := range slices.Backward(c.sets) {
		if !s.archived && !s.deleting && !s.lifecycleArchived {
			return s
		}
	}
	return nil
}

// probed reports whether probes select the kind of the object.
func probed(key objects.Key) bool { return key.Kind == "App" || key.Kind == "Job" }

func digest(parts ...string) objects.Digest {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	var d objects.Digest
	copy(d[:], sum[:])
	return d
}
