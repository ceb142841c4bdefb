package livestate

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects"
)

// KindState is the state of a kind as a whole.
type KindState struct {
	// Served reports whether the API server serves the kind.
	Served bool
	// Namespaced reports whether objects of a served kind are in namespaces.
	Namespaced bool
	// Custom means that a CustomResourceDefinition defines the kind.
	Custom bool
	// Version is the served version that is watched: the preferred one.
	Version string
	// Synced means that the records are complete, or were when Err came up.
	Synced bool
	// Pending means that the first list is in progress, and not slow. Its end changes the state.
	Pending bool
	// Listing numbers the complete lists that records were made from; see Relist.
	Listing int64
	// Err explains why the kind cannot be watched at present, or why it is unknown whether it is
	// served.
	Err error
}

// Unserved reports whether the API server is known not to serve the kind, so it stores no object of
// it.
func (s KindState) Unserved() bool { return !s.Served && s.Err == nil }

// kind is a kind that is used.
type kind struct {
	gk schema.GroupKind

	// These are guarded by Cache.mu. idle stops the watch some time after the last user left.
	users int
	idle  *time.Timer
	// run is the watch; nil while the kind is not served. The next one awaits the end of last.
	run, last *run
	// relist is the number of the run that follows the present list; 0 for none.
	relist int64

	mu sync.RWMutex
	// current is the run whose events are used.
	current *run
	records Records
	synced  bool
	listing int64
	err     error
	// pending is the memory of the records of a list that is being read, and held the
	// reported memory.
	pending, held int64
}

func newKind(gk schema.GroupKind) *kind {
	return &kind{gk: gk, records: NewRecords()}
}

// change returns how the memory of the records changed since the last call. A list in progress is
// counted if it is larger than the records that it replaces. k.mu is held.
func (k *kind) change() int64 {
	before := k.held
	k.held = max(k.records.weight, k.pending)
	return k.held - before
}

func (k *kind) key(n name) objects.Key {
	return objects.Key{Group: k.gk.Group, Kind: k.gk.Kind, Namespace: n.Namespace, Name: n.Name}
}

// changes returns changes with the keys of the objects.
func (k *kind) changes(records []Change) []objects.Change {
	changes := make([]objects.Change, len(records))
	for i, r := range records {
		changes[i] = objects.Change{Key: k.key(r.Name), Observed: r.Observed}
	}
	return changes
}

// follow sets the run whose events are used; nil for none. It returns the dropped records; keep
// keeps them.
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
	k.records, k.synced, k.pending = NewRecords(), false, 0
	return dropped
}

// lists returns the number of the last complete list, 0 before the first.
func (k *kind) lists() int64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.listing
}

// complete reports whether the records are complete, or were when an error came up.
func (k *kind) complete() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.synced
}

// fail sets the error of the kind, and reports whether that changed it.
func (k *kind) fail(r *run, err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != r || fmt.Sprint(k.err) == fmt.Sprint(err) {
		return false
	}
	k.err = err
	return true
}
