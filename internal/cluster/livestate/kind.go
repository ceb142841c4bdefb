package livestate

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects"
)

// KindState is what is known of a kind as a whole.
type KindState struct {
	// Served reports whether the API server serves the kind.
	Served bool
	// Namespaced tells the scope of a served kind.
	Namespaced bool
	// Terminating means that the kind's CRD is being deleted: its objects can be
	// read and deleted, and none can be created.
	Terminating bool
	// Custom means that a CustomResourceDefinition defines the kind.
	Custom bool
	// Version is the served version that is watched: the preferred one.
	Version string
	// Synced means that the records are complete, or were when Err came up.
	Synced bool
	// Listing numbers the complete lists that records were made from; see Relist.
	Listing int64
	// Err is why the kind cannot be watched at present, or why it is not known
	// whether the kind is served. It goes away by itself.
	Err error
}

// Unserved tells for certain that the API server does not serve the kind: nothing of it
// is stored.
func (s KindState) Unserved() bool { return !s.Served && s.Err == nil }

// kind is a kind that is used.
type kind struct {
	gk schema.GroupKind

	// The rest of this block is guarded by Cache.mu.
	users int
	// idle stops the watch some time after the last user left.
	idle *time.Timer
	// run is the watch; nil while the kind is not served. last is the one that was
	// started last: the next one waits until it has ended.
	run, last *run
	// relist is the number of the run that follows as soon as the present one has
	// its list; 0 for none.
	relist int64

	mu sync.RWMutex
	// current is the run whose events count.
	current *run
	records records
	synced  bool
	listing int64
	err     error
}

func newKind(gk schema.GroupKind) *kind {
	return &kind{gk: gk, records: newRecords()}
}

func (k *kind) key(n name) objects.Key {
	return objects.Key{Group: k.gk.Group, Kind: k.gk.Kind, Namespace: n.namespace, Name: n.name}
}

// follow makes r the run whose events count; nil for none. Where nothing is
// kept of what was known, the records that were dropped are returned.
func (k *kind) follow(r *run, keep bool) (dropped []objects.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current, k.err = r, nil
	if keep {
		return nil
	}
	for n := range k.records.byName {
		dropped = append(dropped, k.key(n))
	}
	k.records, k.synced = newRecords(), false
	return dropped
}

// lists returns the number of the last complete list.
func (k *kind) lists() int64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.listing
}

// complete reports whether the records are, or were when an error came up.
func (k *kind) complete() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.synced
}

// fail notes an error, nil for none any more, and reports whether that is news.
func (k *kind) fail(r *run, err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != r || text(k.err) == text(err) {
		return false
	}
	k.err = err
	return true
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
