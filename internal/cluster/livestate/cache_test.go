package livestate

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/cluster/discovery"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// TestRelistOfWhatWasRemembered: records of answers, of whose events nothing was read,
// are listed again like those that come from the watch.
func TestRelistOfWhatWasRemembered(t *testing.T) {
	t.Parallel()
	k := newKind(thingKind)
	c := &Cache{ctx: t.Context(), discovery: unserved(t), kinds: map[schema.GroupKind]*kind{thingKind: k}, runs: 1}
	c.options.Changed, c.options.KindChanged = func(objects.Key, *objects.Observed) {}, func(schema.GroupKind) {}
	r := &run{cache: c, kind: k, number: 1}
	k.run, k.current, k.listing = r, r, 1 // the next list is under way
	c.runs, r.number = 2, 2
	if want := c.Relist(thingKind); want != 2 {
		t.Errorf("nothing has been observed yet, and list %d is wanted, not the one under way", want)
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
