package livestate

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// state returns the record of the object "a" as the watch reports it.
func state(uid types.UID, version string) *objects.Observed {
	return &objects.Observed{UID: uid, ResourceVersion: version, Watched: true}
}

// dump returns all records: name, UID, resource version and ! where not watched.
func dump(r *Records) string {
	var lines []string
	for n, o := range r.byName {
		mark := ""
		if !o.Watched {
			mark = "!"
		}
		lines = append(lines, fmt.Sprintf("%s:%s@%s%s", n.Name, o.UID, o.ResourceVersion, mark))
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

func TestRecords(t *testing.T) {
	t.Parallel()
	a := name{Namespace: "ns", Name: "a"}
	type step func(r *Records) string
	put := func(uid types.UID, version string) step {
		return func(r *Records) string { return fmt.Sprint(r.Put(a, state(uid, version))) }
	}
	remove := func(uid types.UID, version string) step {
		return func(r *Records) string { return fmt.Sprint(r.Remove(a, uid, version)) }
	}
	remember := func(uid types.UID, version string) step {
		return func(r *Records) string { r.Remember(a, state(uid, version)); return "" }
	}
	gone := func(uid types.UID) step {
		return func(r *Records) string { r.Gone(a, uid); return "" }
	}
	confirm := func(uid types.UID, version string) step {
		return func(r *Records) string { _, news := r.confirm(a, uid, version); return fmt.Sprint(news) }
	}
	progress := func(version string) step {
		return func(r *Records) string { r.progress.Advance(version); return "" }
	}
	list := func(version string, states ...*objects.Observed) step {
		return func(r *Records) string {
			var items []Change
			for _, s := range states {
				items = append(items, Change{a, s})
			}
			return fmt.Sprint(len(r.Replace(items, version)))
		}
	}

	for name, tc := range map[string]struct {
		reason string
		steps  []step
		want   string
		last   string
	}{
		"event": {
			reason: "an event makes a record", steps: []step{put("u", "5")}, want: "a:u@5", last: "true",
		},
		"response before its event": {
			reason: "our own state is known before the watch reports it",
			steps:  []step{remember("u", "5")}, want: "a:u@5!", last: "",
		},
		"event of our write": {
			reason: "the event of the same state makes it watched, and that is news",
			steps:  []step{remember("u", "5"), put("u", "5")}, want: "a:u@5", last: "true",
		},
		"event of our write, by name alone": {
			reason: "the watch has delivered the state that is known, and that is news",
			steps:  []step{remember("u", "5"), confirm("u", "5")}, want: "a:u@5", last: "true",
		},
		"late event, by name alone": {
			reason: "an event from before our write is older than the known state",
			steps:  []step{put("u", "3"), remember("u", "5"), confirm("u", "4")}, want: "a:u@5!", last: "false",
		},
		"event of a predecessor, by name alone": {
			reason: "versions of different objects are not the same state",
			steps:  []step{remember("v", "5"), confirm("u", "5")}, want: "a:v@5!", last: "false",
		},
		"late event": {
			reason: "an event from before our write must not take it back",
			steps:  []step{put("u", "3"), remember("u", "5"), put("u", "4")}, want: "a:u@5!", last: "false",
		},
		"event after our write": {
			reason: "the watch is ahead of our write",
			steps:  []step{remember("u", "5"), put("u", "6")}, want: "a:u@6", last: "true",
		},
		"late response": {
			reason: "a response that the watch has overtaken is ignored",
			steps:  []step{put("u", "6"), remember("u", "5")}, want: "a:u@6", last: "",
		},
		"response of a write without effect": {
			reason: "the state was seen by the watch, and stays so",
			steps:  []step{put("u", "5"), remember("u", "5")}, want: "a:u@5", last: "",
		},
		"response after the deletion": {
			reason: "the watch has passed that state and the object is not there: it was deleted",
			steps:  []step{put("u", "5"), remove("u", "6"), remember("u", "5")}, want: "", last: "",
		},
		"response after progress": {
			reason: "a bookmark shows that the watch has passed that state",
			steps:  []step{progress("7"), remember("u", "5")}, want: "", last: "",
		},
		"put back under the label": {
			reason: "the object lost its label, we put it back; the loss arrives late",
			steps:  []step{put("u", "3"), remember("u", "5"), remove("u", "4")}, want: "a:u@5!", last: "false",
		},
		"deleted": {
			reason: "a deletion drops the record", steps: []step{put("u", "5"), remove("u", "6")}, want: "", last: "true",
		},
		"deleted after our write": {
			reason: "another client deleted the object that we had just written",
			steps:  []step{remember("u", "5"), remove("u", "6")}, want: "", last: "true",
		},
		"deletion of a predecessor": {
			reason: "the object was deleted and made again; the deletion arrives late",
			steps:  []step{put("u", "3"), remember("v", "6"), remove("u", "5")}, want: "a:v@6!", last: "false",
		},
		"confirmed deletion": {
			reason: "events of a deleted object are ignored, its DELETED event included",
			steps:  []step{put("u", "3"), gone("u"), put("u", "4"), remove("u", "5")}, want: "", last: "false",
		},
		"successor of a confirmed deletion": {
			reason: "a later object has another UID",
			steps:  []step{put("u", "3"), gone("u"), put("v", "6"), remove("u", "5")}, want: "a:v@6", last: "false",
		},
		"confirmed deletion of another object": {
			reason: "a record of another UID is not concerned",
			steps:  []step{put("v", "3"), gone("u")}, want: "a:v@3", last: "",
		},
		"late response of a confirmed deletion": {
			reason: "a response that arrives after the deletion was confirmed is ignored",
			steps:  []step{put("u", "3"), gone("u"), remember("u", "4")}, want: "", last: "",
		},
		"list": {
			reason: "a list is taken over", steps: []step{list("9", state("u", "3"))}, want: "a:u@3", last: "1",
		},
		"unchanged in a list": {
			reason: "an unchanged object is not reported", steps: []step{put("u", "3"), list("9", state("u", "3"))}, want: "a:u@3", last: "0",
		},
		"absent in a list": {
			reason: "an object that is not listed is deleted", steps: []step{put("u", "3"), list("9")}, want: "", last: "1",
		},
		"list older than our write": {
			reason: "the list was read before we created the object",
			steps:  []step{put("v", "1"), remove("v", "2"), remember("u", "5"), list("4")}, want: "a:u@5!", last: "0",
		},
		"list with an older state than our write": {
			reason: "the list was read before we changed the object",
			steps:  []step{put("u", "3"), remember("u", "5"), list("4", state("u", "3"))}, want: "a:u@5!", last: "0",
		},
		"list newer than our write": {
			reason: "we had created it, and it has been deleted since",
			steps:  []step{remember("u", "5"), list("9")}, want: "", last: "1",
		},
		"list from before a confirmed deletion": {
			reason: "a list can still contain a deleted object",
			steps:  []step{put("u", "3"), gone("u"), list("4", state("u", "3"))}, want: "", last: "0",
		},
		"store restored from a backup": {
			reason: "resource versions went back, so earlier records are void",
			steps:  []step{put("v", "90"), remember("u", "95"), list("40", state("u", "30"))}, want: "a:u@30", last: "1",
		},
		"writes after a restore": {
			reason: "versions are compared with those since the restore",
			steps:  []step{put("u", "90"), list("40", state("u", "30")), remember("u", "41")}, want: "a:u@41!", last: "",
		},
		"versions that are not numbers": {
			reason: "the watch wins where versions cannot be compared",
			steps:  []step{remember("u", "x"), put("u", "y")}, want: "a:u@y", last: "true",
		},
		"a list with a version that is not a number": {
			reason: "the watch wins where versions cannot be compared",
			steps:  []step{remember("u", "x"), list("z")}, want: "", last: "1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := NewRecords()
			var last string
			for _, s := range tc.steps {
				last = s(&r)
			}
			if diff := cmp.Diff(tc.want, dump(&r)); diff != "" {
				t.Errorf("records: %s\n%s", tc.reason, diff)
			}
			if last != tc.last {
				t.Errorf("the last step reports %q, want %q: %s", last, tc.last, tc.reason)
			}
		})
	}
}

// world is an API server's store of one kind, and everything on its way to the
// records: the watch in order, responses in the order of our writes of that
// object, which the engine writes from one place.
type world struct {
	version int
	live    map[string]*thing
	events  []event
	pending map[string][]func(*Records)
	lastUID int
}

var names = []string{"a", "b"}

type thing struct {
	uid      types.UID
	version  int
	labelled bool
}

type event struct {
	name    string
	thing   thing
	deleted bool
}

func (w *world) commit(n string, before, after *thing) {
	w.version++
	if after != nil {
		after.version = w.version
		w.live[n] = after
	} else {
		delete(w.live, n)
	}
	switch {
	case after != nil && after.labelled:
		w.events = append(w.events, event{n, *after, false})
	case before != nil && before.labelled:
		gone := *before
		gone.version = w.version
		w.events = append(w.events, event{n, gone, true})
	}
}

func (t thing) record() *objects.Observed { return state(t.uid, strconv.Itoa(t.version)) }

// write changes one object: of is the writer, we or another client.
func (w *world) write(t *rapid.T, ours bool) {
	n := rapid.SampledFrom(names).Draw(t, "name")
	old := w.live[n]
	if old == nil {
		w.lastUID++
		created := &thing{uid: types.UID(fmt.Sprint("u", w.lastUID)), labelled: ours || rapid.Bool().Draw(t, "labelled")}
		w.commit(n, nil, created)
		w.respond(ours, n, *created)
		return
	}
	if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
		w.commit(n, old, nil)
		if ours {
			w.pending[n] = append(w.pending[n], func(r *Records) { r.Gone(name{Namespace: "", Name: n}, old.uid) })
		}
		return
	}
	changed := *old
	changed.labelled = ours || rapid.Bool().Draw(t, "labelled")
	w.commit(n, old, &changed)
	w.respond(ours, n, changed)
}

func (w *world) respond(ours bool, n string, now thing) {
	if ours {
		w.pending[n] = append(w.pending[n], func(r *Records) { r.Remember(name{Namespace: "", Name: n}, now.record()) })
	}
}

func (w *world) deliver(r *Records) {
	e := w.events[0]
	w.events = w.events[1:]
	n := name{Namespace: "", Name: e.name}
	if e.deleted {
		r.Remove(n, e.thing.uid, strconv.Itoa(e.thing.version))
		return
	}
	r.Put(n, e.thing.record())
}

// answer delivers the next response about one object.
func (w *world) answer(t *rapid.T, r *Records) {
	n := rapid.SampledFrom(names).Draw(t, "response about")
	if len(w.pending[n]) > 0 {
		w.pending[n][0](r)
		w.pending[n] = w.pending[n][1:]
	}
}

// relist reads everything at the present version and skips the events before.
func (w *world) relist(r *Records) {
	var list []Change
	for n, th := range w.live {
		if th.labelled {
			list = append(list, Change{name{Namespace: "", Name: n}, th.record()})
		}
	}
	w.events = nil
	r.Replace(list, strconv.Itoa(w.version))
}

// TestRecordsConverge: events, lists and responses can arrive in any order. Once all have arrived,
// the records are the objects with the label. On the way, the known state of an object never goes
// back.
func TestRecordsConverge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{live: map[string]*thing{}, pending: map[string][]func(*Records){}}
		r := NewRecords()
		newest := map[types.UID]int{}
		check := func() {
			for _, obs := range r.byName {
				v, _ := strconv.Atoi(obs.ResourceVersion)
				if v < newest[obs.UID] {
					t.Fatalf("%s went back from %d to %d", obs.UID, newest[obs.UID], v)
				}
				newest[obs.UID] = v
			}
		}
		step := func(kinds int) {
			switch rapid.IntRange(0, kinds).Draw(t, "step") {
			case 0, 1:
				if len(w.events) > 0 {
					w.deliver(&r)
				}
			case 2, 3:
				w.answer(t, &r)
			case 4, 5:
				w.write(t, true)
			case 6:
				w.write(t, false)
			case 7:
				w.relist(&r)
			}
			check()
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			step(7)
		}
		for len(w.events)+len(w.pending["a"])+len(w.pending["b"]) > 0 {
			step(3)
		}
		want := NewRecords()
		for n, th := range w.live {
			if th.labelled {
				want.Put(name{Namespace: "", Name: n}, th.record())
			}
		}
		if diff := cmp.Diff(dump(&want), dump(&r)); diff != "" {
			t.Fatalf("records after everything arrived:\n%s", diff)
		}
		if len(r.gone) > 0 {
			t.Fatalf("deletions that are remembered for ever: %v", r.gone)
		}
	})
}

// TestRecordsAreSmall bounds the memory of ten thousand records by 5 MB. They have
// the owners of a thousand packages, and 32 packages are installed at a time. It
// measures the heap, so it does not run in parallel.
func TestRecordsAreSmall(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const count, together, limit = 10_000, 32, 5 << 20
	before := heap()
	r := NewRecords()
	for i := range count {
		pkg := i/10/together*together + i%together
		key := objects.Key{Kind: "ConfigMap", Namespace: fmt.Sprint("namespace-", pkg), Name: fmt.Sprintf("object-%d-of-package-%d", i, pkg)}
		r.Put(NameOf(key), &objects.Observed{
			UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)), ResourceVersion: strconv.Itoa(i + 1), Watched: true,
			Owners: apinames.Default.References([]metav1.OwnerReference{{
				APIVersion: "package-operator.run/v1alpha1", Kind: "ObjectDeployment", Name: fmt.Sprint("package-", pkg),
				UID: types.UID(fmt.Sprintf("11111111-0000-0000-0000-%012d", pkg)), Controller: ptr.To(true),
			}}, nil),
		})
	}
	used := heap() - before
	t.Logf("%d records use %d KiB", count, used>>10)
	if used > limit {
		t.Errorf("%d records use %d bytes, more than %d", count, used, limit)
	}
	runtime.KeepAlive(&r)
}
