package hostedclusterpackages

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"lockstep.run/lockstep/test/properties"
)

// fleet is a model of hosted clusters with Packages, and of a manager that is killed at any time.
type fleet struct {
	t        *rapid.T
	most     int
	template int
	// observed is the template of the recorded queue.
	observed int
	members  []*member
	queue    map[types.UID]bool
	made     int
}

// member is a Package. Its updates are rolled out unless it is ill.
type member struct {
	uid                     types.UID
	group, version          int
	exists, ill             bool
	stable, failed, refused bool
}

func (m *member) down() bool { return !m.exists || m.ill }

func (f *fleet) targets() []target {
	all := make([]target, len(f.members))
	for i, m := range f.members {
		all[i] = target{namespace: fmt.Sprintf("ns%03d", i), group: m.group, refused: m.refused}
		if m.exists {
			all[i].uid, all[i].queued, all[i].updated = m.uid, f.queue[m.uid], m.version == f.template
			all[i].available, all[i].stable, all[i].failed = !m.ill, m.stable && !m.ill, m.failed
		}
	}
	return all
}

// updating counts Packages that were updated and are not stable since.
func (f *fleet) updating() int {
	n := 0
	for _, m := range f.members {
		if m.exists && f.queue[m.uid] && (!m.stable || m.ill) {
			n++
		}
	}
	return n
}

// reconcile decides, records the queue, and sends writes until the manager is killed.
func (f *fleet) reconcile(writes int) (acted bool) {
	targets := f.targets()
	changed := f.observed != f.template
	d := decide(snapshot{most: f.most, targets: targets, templateChanged: changed})
	f.check(targets, d, changed)
	f.observed, f.queue = f.template, map[types.UID]bool{}
	for _, i := range d.queue {
		f.queue[targets[i].uid] = true
	}
	for _, i := range append(d.create, d.update...) {
		if writes--; writes < 0 {
			return true
		}
		acted = true
		m := f.members[i]
		if !m.exists {
			f.made++
			m.exists, m.uid = true, types.UID(fmt.Sprint("made", f.made))
		}
		m.version, m.stable, m.failed = f.template, false, false
	}
	return acted
}

// check compares a decision with the allowed ones.
func (f *fleet) check(targets []target, d decision, changed bool) {
	fail := func(what string, i int) {
		f.t.Fatalf("%s: target %d of %+v\nby %+v with at most %d", what, i, targets, d, f.most)
	}
	unready := 0
	for i := range targets {
		t := &targets[i]
		if !t.exists() || !t.available || t.updated && !t.stable || stays(t, changed) {
			unready++
		}
		kept := t.updated && t.stable || t.refused || changed && t.stable
		if t.queued && !kept && !slices.Contains(d.queue, i) {
			fail("a Package whose update has not ended lost its place in the queue", i)
		}
	}
	if len(d.queue) > f.most {
		fail("more updates at a time than allowed", -1)
	}
	for _, i := range d.update {
		t := &targets[i]
		if !slices.Contains(d.queue, i) {
			fail("an update that is not in the queue", i)
		}
		if t.updated || !t.writable() {
			fail("a senseless update", i)
		}
		if stays(t, changed) {
			continue // it was started before
		}
		if t.available {
			if unready++; unready > f.most {
				fail("an update that leaves too few available", i)
			}
		}
		for j := range targets {
			earlier := &targets[j]
			if earlier.group < t.group && (earlier.outdated() && !earlier.refused || slices.Contains(d.queue, j) && !earlier.failed) {
				fail("an update before its turn", i)
			}
		}
	}
}

func newFleet(t *rapid.T) *fleet {
	f := &fleet{t: t, most: rapid.IntRange(1, 4).Draw(t, "most"), template: 1, observed: 1, queue: map[types.UID]bool{}}
	for i := range rapid.IntRange(1, 12).Draw(t, "clusters") {
		f.members = append(f.members, &member{
			uid: types.UID(fmt.Sprint(i)), group: rapid.IntRange(0, 3).Draw(t, "group"), version: 1, exists: true, stable: true,
		})
	}
	slices.SortStableFunc(f.members, func(a, b *member) int { return cmp.Compare(a.group, b.group) })
	return f
}

// The budget and the order are always kept. Once all Packages can become available, all of them are
// updated.
func TestRolloutProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(t)
		some := func() *member { return f.members[rapid.IntRange(0, len(f.members)-1).Draw(t, "member")] }
		t.Repeat(map[string]func(*rapid.T){
			"reconcile":  func(*rapid.T) { f.reconcile(len(f.members)) },
			"killed":     func(t *rapid.T) { f.reconcile(rapid.IntRange(0, 3).Draw(t, "writes")) },
			"template":   func(*rapid.T) { f.template++ },
			"stabilizes": func(*rapid.T) { m := some(); m.stable, m.failed = !m.ill, false },
			"falls ill":  func(*rapid.T) { some().ill = true },
			"outage": func(*rapid.T) {
				for _, m := range f.members {
					m.ill = true
				}
			},
			"recovers": func(*rapid.T) { some().ill = false },
			"fails": func(*rapid.T) {
				if m := some(); !m.stable || m.ill {
					m.failed = true
				}
			},
			"refused": func(*rapid.T) { m := some(); m.refused = !m.refused },
			"deleted": func(*rapid.T) { some().exists = false },
			"": func(t *rapid.T) {
				if f.updating() > f.most {
					t.Fatalf("%d are updated at a time, the limit is %d", f.updating(), f.most)
				}
			},
		})
		f.finish()
	})
}

// finish makes every member available, and fails if an update is left out.
func (f *fleet) finish() {
	for range 3 * (len(f.members) + 1) {
		for _, m := range f.members {
			m.ill, m.failed, m.refused, m.stable = false, false, false, m.exists
		}
		f.reconcile(len(f.members))
	}
	for i, m := range f.members {
		if m.down() || m.version != f.template {
			f.t.Fatalf("all are available, and %d is not updated: %+v", i, *m)
		}
	}
	if f.reconcile(len(f.members)) || len(f.queue) > 0 {
		f.t.Fatalf("at rest, yet %v is queued", f.queue)
	}
}

func TestMain(m *testing.M) { properties.Main(m, 5000) }
