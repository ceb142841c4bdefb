package livestate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"lockstep.run/lockstep/internal/cluster/discovery"
	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
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
		"event":                     {"an event makes a record", []step{put("u", "5")}, "a:u@5", "true"},
		"response before its event": {"our own state is known before the watch reports it", []step{remember("u", "5")}, "a:u@5!", ""},
		"event of our write": {"the event of the same state makes it watched, and that is news",
			[]step{remember("u", "5"), put("u", "5")}, "a:u@5", "true"},
		"event of our write, by name alone": {"the watch has delivered the state that is known, and that is news",
			[]step{remember("u", "5"), confirm("u", "5")}, "a:u@5", "true"},
		"late event, by name alone": {"an event from before our write is older than the known state",
			[]step{put("u", "3"), remember("u", "5"), confirm("u", "4")}, "a:u@5!", "false"},
		"event of a predecessor, by name alone": {"versions of different objects are not the same state",
			[]step{remember("v", "5"), confirm("u", "5")}, "a:v@5!", "false"},
		"late event": {"an event from before our write must not take it back",
			[]step{put("u", "3"), remember("u", "5"), put("u", "4")}, "a:u@5!", "false"},
		"event after our write": {"the watch is ahead of our write", []step{remember("u", "5"), put("u", "6")}, "a:u@6", "true"},
		"late response":         {"a response that the watch has overtaken is ignored", []step{put("u", "6"), remember("u", "5")}, "a:u@6", ""},
		"response of a write without effect": {"the state was seen by the watch, and stays so",
			[]step{put("u", "5"), remember("u", "5")}, "a:u@5", ""},
		"response after the deletion": {"the watch has passed that state and the object is not there: it was deleted",
			[]step{put("u", "5"), remove("u", "6"), remember("u", "5")}, "", ""},
		"response after progress": {"a bookmark shows that the watch has passed that state",
			[]step{progress("7"), remember("u", "5")}, "", ""},
		"put back under the label": {"the object lost its label, we put it back; the loss arrives late",
			[]step{put("u", "3"), remember("u", "5"), remove("u", "4")}, "a:u@5!", "false"},
		"deleted":                 {"a deletion drops the record", []step{put("u", "5"), remove("u", "6")}, "", "true"},
		"deleted after our write": {"another client deleted the object that we had just written", []step{remember("u", "5"), remove("u", "6")}, "", "true"},
		"deletion of a predecessor": {"the object was deleted and made again; the deletion arrives late",
			[]step{put("u", "3"), remember("v", "6"), remove("u", "5")}, "a:v@6!", "false"},
		"confirmed deletion": {"events of a deleted object are ignored, its DELETED event included",
			[]step{put("u", "3"), gone("u"), put("u", "4"), remove("u", "5")}, "", "false"},
		"successor of a confirmed deletion": {"a later object has another UID",
			[]step{put("u", "3"), gone("u"), put("v", "6"), remove("u", "5")}, "a:v@6", "false"},
		"confirmed deletion of another object": {"a record of another UID is not concerned", []step{put("v", "3"), gone("u")}, "a:v@3", ""},
		"late response of a confirmed deletion": {"a response that arrives after the deletion was confirmed is ignored",
			[]step{put("u", "3"), gone("u"), remember("u", "4")}, "", ""},
		"list":                {"a list is taken over", []step{list("9", state("u", "3"))}, "a:u@3", "1"},
		"unchanged in a list": {"an unchanged object is not reported", []step{put("u", "3"), list("9", state("u", "3"))}, "a:u@3", "0"},
		"absent in a list":    {"an object that is not listed is deleted", []step{put("u", "3"), list("9")}, "", "1"},
		"list older than our write": {"the list was read before we created the object",
			[]step{put("v", "1"), remove("v", "2"), remember("u", "5"), list("4")}, "a:u@5!", "0"},
		"list with an older state than our write": {"the list was read before we changed the object",
			[]step{put("u", "3"), remember("u", "5"), list("4", state("u", "3"))}, "a:u@5!", "0"},
		"list newer than our write": {"we had created it, and it has been deleted since", []step{remember("u", "5"), list("9")}, "", "1"},
		"list from before a confirmed deletion": {"a list can still contain a deleted object",
			[]step{put("u", "3"), gone("u"), list("4", state("u", "3"))}, "", "0"},
		"store restored from a backup": {"resource versions went back, so earlier records are void",
			[]step{put("v", "90"), remember("u", "95"), list("40", state("u", "30"))}, "a:u@30", "1"},
		"writes after a restore": {"versions are compared with those since the restore",
			[]step{put("u", "90"), list("40", state("u", "30")), remember("u", "41")}, "a:u@41!", ""},
		"versions that are not numbers": {"the watch wins where versions cannot be compared",
			[]step{remember("u", "x"), put("u", "y")}, "a:u@y", "true"},
		"a list with a version that is not a number": {"the watch wins where versions cannot be compared",
			[]step{remember("u", "x"), list("z")}, "", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := NewRecords()
			var last string
			for _, s := range tc.steps {
				last = s(&r)
			}
			require.Equal(t, tc.want, dump(&r), fmt.Sprintf("records: %s", tc.reason))
			require.Equal(t, tc.last, last, "the last step reports")
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

// TestRelistOfWhatWasRemembered: records of answers are listed again like those from the watch,
// even if their events were not read yet.
func TestRelistOfWhatWasRemembered(t *testing.T) {
	t.Parallel()
	k := newKind(thingKind)
	c := &Cache{ctx: t.Context(), discovery: unserved(t), kinds: map[schema.GroupKind]*kind{thingKind: k}, runs: 1}
	c.options.Changed, c.options.KindChanged = func(...objects.Change) {}, func(schema.GroupKind) {}
	r := &run{cache: c, kind: k, number: 1}
	k.run, k.current, k.listing = r, r, 1 // the next list is under way
	c.runs, r.number = 2, 2
	require.Equal(t, int64(2), c.Relist(thingKind), "no object has been observed yet: the next list, not the one under way")
	key := objects.Key{Group: thingKind.Group, Kind: thingKind.Kind, Namespace: "a", Name: "one"}
	c.Remember(key, &objects.Observed{UID: "u", ResourceVersion: "5"})
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "one", UID: "u", ResourceVersion: "5"}}
	require.NoError(t, r.Update(live))
	if obs, _ := c.Get(key); obs == nil || !obs.Watched {
		t.Fatalf("the event confirms the record: %+v", obs)
	}
	require.Equal(t, int64(3), c.Relist(thingKind), "a list looks at the record again")

	// A list that is older than the answer leaves its record as it is.
	next := &run{cache: c, kind: k, number: 3}
	k.run, k.current, c.runs = next, next, 3
	c.Remember(key, &objects.Observed{UID: "u", ResourceVersion: "9"})
	next.observed.Store(false) // it was another run that remembered it
	require.NoError(t, next.Replace(nil, "7"))
	if !next.observed.Load() {
		t.Error("the record that stayed would never be looked at again")
	}
}

var thingKind = schema.GroupKind{Group: "example.com", Kind: "Thing"}

// unserved returns a Discovery that has read nothing.
func unserved(t *testing.T) *discovery.Discovery {
	t.Helper()
	d, err := discovery.New(&rest.Config{Host: "http://unused.test"}, http.DefaultClient, discovery.Options{})
	require.NoError(t, err)
	return d
}

// If Observe panics, the object's metadata is recorded, and the log names the object without the
// text of the panic (invariant 8).
func TestPanicOverALiveObject(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	c := &Cache{options: Options{
		Names: apinames.Default,
		Log:   funcr.New(func(_, args string) { logged.WriteString(args) }, funcr.Options{}),
		Observe: func(_ objects.Key, live *unstructured.Unstructured) *objects.Observed {
			panic(live.Object["data"])
		},
	}}
	live := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(7)}, "data": "hunter2"}}
	if obs := c.observe(objects.Key{Kind: "Secret", Namespace: "n", Name: "a"}, live); obs == nil || obs.Generation != 7 {
		t.Errorf("it is known as %+v", obs)
	}
	if text := logged.String(); strings.Contains(text, "hunter2") || !strings.Contains(text, "Secret n/a") {
		t.Errorf("the log has %s", text)
	}
}

// Only present records are counted as memory, after any history.
func TestWeight(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		k := newKind(schema.GroupKind{Kind: "ConfigMap"})
		var held int64
		for i := range 200 {
			n := name{Namespace: "default", Name: fmt.Sprint("object-", random.IntN(10))}
			obs := &objects.Observed{
				UID: types.UID(fmt.Sprint("u", random.IntN(20))), ResourceVersion: fmt.Sprint(random.IntN(i + 1)), Held: fmt.Sprint(random.Uint64() >> random.IntN(64)),
				Owners: make([]objects.Reference, random.IntN(3)),
			}
			for j := range obs.Owners {
				obs.Owners[j].OwnerReference = metav1.OwnerReference{Name: n.Name, UID: obs.UID}
			}
			switch random.IntN(6) {
			case 0:
				k.records.Remove(n, obs.UID, obs.ResourceVersion)
			case 1:
				k.records.Remember(n, obs)
			case 2:
				k.records.Gone(n, obs.UID)
			case 3:
				k.records.Replace([]Change{{Name: n, Observed: obs}}, obs.ResourceVersion)
			case 4:
				k.records.confirm(n, obs.UID, obs.ResourceVersion)
			default:
				k.records.Put(n, obs)
			}
			held += k.change()
			var want int64
			for n, obs := range k.records.byName {
				want += weigh(n, obs)
			}
			if k.records.weight != want || held != want {
				t.Fatalf("seed %d, step %d: weight %d, held %d, want %d", seed, i, k.records.weight, held, want)
			}
		}
		k.follow(nil, false)
		if held += k.change(); held != 0 {
			t.Fatalf("seed %d: %d bytes are accounted without records", seed, held)
		}
	}
}

// TestEvents: only the name is decoded of a known state and of a deleted object;
// all else is decoded in full.
func TestEvents(t *testing.T) {
	t.Parallel()
	known := func(n name, uid types.UID, version string) bool {
		return n == name{Namespace: "n", Name: "a"} && uid == "u" && version == "7"
	}
	serializer := reflector.Events{NegotiatedSerializer: dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer, Object: observed{known}.object}
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a","uid":"u","resourceVersion":"7"},"data":{"big":1}}`
	for reason, tc := range map[string]struct{ frame, want string }{
		"our own write":           {`{"type":"MODIFIED","object":` + object + `}`, "*v1.PartialObjectMetadata n/a u 7"},
		"created by us":           {`{"type":"ADDED","object":` + object + `}`, "*v1.PartialObjectMetadata n/a u 7"},
		"deleted":                 {`{"type":"DELETED","object":{"metadata":{"name":"b","uid":"x","resourceVersion":"9"}}}`, "*v1.PartialObjectMetadata /b x 9"},
		"a state that is new":     {`{"type":"MODIFIED","object":{"kind":"A","metadata":{"namespace":"n","name":"a","uid":"u","resourceVersion":"8"}}}`, "*unstructured.Unstructured n/a u 8"},
		"the type comes last":     {`{"object":` + object + `,"type":"ADDED"}`, "*v1.PartialObjectMetadata n/a u 7"},
		"progress":                {`{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"12"}}}`, "*unstructured.Unstructured /  12"},
		"the watch is too old":    {`{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","status":"Failure","code":410}}`, "*v1.Status 410"},
		"a refusal, not a stream": {`{"apiVersion":"v1","kind":"Status","status":"Failure","code":429}`, "*v1.Status 429"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			info, _ := apiruntime.SerializerInfoForMediaType(serializer.SupportedMediaTypes(), apiruntime.ContentTypeJSON)
			event := &metav1.WatchEvent{}
			if _, _, err := info.StreamSerializer.Decode([]byte(tc.frame), nil, event); err != nil {
				t.Fatal(err)
			}
			obj, err := apiruntime.Decode(serializer.DecoderToVersion(info.Serializer, nil), event.Object.Raw)
			require.NoError(t, err)
			require.Equal(t, tc.want, describe(obj))
		})
	}
	list := &unstructured.UnstructuredList{}
	info, _ := apiruntime.SerializerInfoForMediaType(serializer.SupportedMediaTypes(), apiruntime.ContentTypeJSON)
	text := `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"3"},"items":[` + object + `]}`
	if _, _, err := serializer.DecoderToVersion(info.Serializer, nil).Decode([]byte(text), nil, list); err != nil || len(list.Items) != 1 || list.Items[0].GetUID() != "u" {
		t.Errorf("a list is decoded as %+v, %v", list, err)
	}
}

// The name of a known state becomes the key of a record: it must not hold the text
// of the event, which is a hundred times as long.
func TestKnownEventsHoldNoText(t *testing.T) {
	// Not parallel: it measures the heap.
	known := func(name, types.UID, string) bool { return true }
	text := `{"kind":"ConfigMap","metadata":{"namespace":"space","name":"one","uid":"u","resourceVersion":"7"},"data":{"a":"` +
		strings.Repeat("x", 1<<20) + `"}}`
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var held []*metav1.PartialObjectMetadata
	for i := range 16 {
		obj, err := observed{known}.object(watch.Added, strings.Replace(text, "one", fmt.Sprint(i), 1))
		require.NoError(t, err)
		held = append(held, obj.(*metav1.PartialObjectMetadata))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d names hold %d bytes", len(held), grown)
	}
	runtime.KeepAlive(held)
}

func describe(obj apiruntime.Object) string {
	switch obj := obj.(type) {
	case *metav1.Status:
		return fmt.Sprintf("%T %d", obj, obj.Code)
	case metav1.Object:
		return fmt.Sprintf("%T %s/%s %s %s", obj, obj.GetNamespace(), obj.GetName(), obj.GetUID(), obj.GetResourceVersion())
	}
	return fmt.Sprintf("%T", obj)
}

// TestFirstListMayFailForAWhile: a transient error is not reported while the kind has
// no records yet.
func TestFirstListMayFailForAWhile(t *testing.T) {
	t.Parallel()
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		age    time.Duration
		synced bool
		want   bool
	}{
		"no answer":          {"the connection broke", errors.New("EOF"), 0, false, false},
		"busy":               {"it states when to retry", apierrors.NewTooManyRequests("busy", 1), 0, false, false},
		"failing":            {"it might be starting", apierrors.NewInternalError(errors.New("starting")), 0, false, false},
		"failing for long":   {"it has lasted for too long", apierrors.NewInternalError(errors.New("down")), firstListGrace, false, true},
		"forbidden":          {"the right has to be granted", apierrors.NewForbidden(configMaps.GroupResource(), "", errors.New("no")), 0, false, true},
		"a watch that ended": {"the records can be old", errors.New("EOF"), 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKind(schema.GroupKind{Kind: "ConfigMap"})
			c := &Cache{}
			c.options.KindChanged = func(schema.GroupKind) {}
			r := &run{cache: c, kind: k, began: time.Now().Add(-tc.age), crd: "crd", resource: configMaps}
			k.current, k.synced = r, tc.synced
			r.requested(tc.err)
			require.Equal(t, tc.want, k.err != nil, fmt.Sprintf("%s: reported", tc.reason))
		})
	}
}

// TestOldListOfObjects: a list of an API server that is behind does not reset records to an
// earlier state, and is not an error of the kind. If lists stay old, the cluster was restored
// from a backup.
func TestOldListOfObjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKind(schema.GroupKind{Kind: "ConfigMap"})
		lists := 0
		c := &Cache{options: Options{
			Changed:     func(...objects.Change) { lists++ },
			KindChanged: func(schema.GroupKind) {},
		}}
		r := &run{cache: c, kind: k}
		k.current = r
		list := func(version string) error {
			obs := &objects.Observed{UID: "1", ResourceVersion: version, Watched: true}
			all := []any{&listed{Change: Change{name{Namespace: "default", Name: "a"}, obs}}, &listed{Change: Change{name{Namespace: "default", Name: "b"}, obs}}}
			return r.Replace(all, version)
		}
		want := func(version string) {
			t.Helper()
			if got := k.records.byName[name{Namespace: "default", Name: "a"}].ResourceVersion; got != version || k.err != nil {
				t.Errorf("the object is known at %s, want %s; the kind's error is %v", got, version, k.err)
			}
		}
		require.NoError(t, list("11"))
		require.Equal(t, 1, lists, "changes of a list are reported together")
		r.UpdateResourceVersion("14")
		for range 2 {
			err := list("12")
			if !errors.Is(err, reflector.ErrOld) {
				t.Errorf("an older list is taken over: %v", err)
			}
			want("11")
			time.Sleep(limits.OldLists / 2)
		}
		if err := list("12"); err != nil {
			t.Error(err)
		}
		want("12")
		if r.requested(errors.New("no answer")); k.err == nil {
			t.Error("a later error is not reported")
		}
	})
}
