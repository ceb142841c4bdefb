package livestate

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/cluster/discovery"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

// TestRelistOfWhatWasRemembered: records of answers are listed again like those from the watch,
// even if their events were not read yet.
func TestRelistOfWhatWasRemembered(t *testing.T) {
	t.Parallel()
	k := newKind(thingKind)
	c := &Cache{ctx: t.Context(), discovery: unserved(t), kinds: map[schema.GroupKind]*kind{thingKind: k}, runs: 1}
	c.options.Changed, c.options.KindChanged = func(objects.Key, *objects.Observed) {}, func(schema.GroupKind) {}
	r := &run{cache: c, kind: k, number: 1}
	k.run, k.current, k.listing = r, r, 1 // the next list is under way
	c.runs, r.number = 2, 2
	if want := c.Relist(thingKind); want != 2 {
		t.Errorf("no object has been observed yet, and list %d is required, not the one under way", want)
	}
	key := objects.Key{Group: thingKind.Group, Kind: thingKind.Kind, Namespace: "a", Name: "one"}
	c.Remember(key, &objects.Observed{UID: "u", ResourceVersion: "5"})
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "one", UID: "u", ResourceVersion: "5"}}
	require.NoError(t, r.Update(live))
	if obs, _ := c.Get(key); obs == nil || !obs.Watched {
		t.Fatalf("the event confirms the record: %+v", obs)
	}
	if want := c.Relist(thingKind); want != 3 {
		t.Errorf("list %d is wanted, which does not look at the record again", want)
	}

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
