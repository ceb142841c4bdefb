package phases_test

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
)

// watch is what the engine knows of one kind: a list, then events in their
// order, each some time after it happened, and its own writes remembered until
// the events show them. It keeps records as package livestate does.
type watch struct {
	synced  bool
	next    int // index of the next event
	seen    int // resource version that the watch has reached
	records map[objects.Key]*objects.Observed
	gone    map[types.UID]bool
}

func newWatch() *watch {
	return &watch{records: map[objects.Key]*objects.Observed{}, gone: map[types.UID]bool{}}
}

// deliver takes over one event and tells which object changed by it.
func (w *watch) deliver(e event, observe func(objects.Key, *thing) *objects.Observed) {
	w.next++
	w.seen = e.version
	old := w.records[e.key]
	if w.gone[e.uid] {
		if e.obs == nil {
			delete(w.gone, e.uid)
		}
		return
	}
	newer := old != nil && !old.Watched && versionOf(old) > e.version
	switch {
	case newer:
		return // we have written since
	case e.obs == nil:
		if old != nil && old.UID == e.uid {
			delete(w.records, e.key)
		}
	default:
		obs := observe(e.key, e.obs)
		obs.Watched = true
		w.records[e.key] = obs
	}
}

// remember keeps the response to a write or a read of ours.
func (w *watch) remember(key objects.Key, obs *objects.Observed) {
	old := w.records[key]
	if old != nil && old.ResourceVersion == obs.ResourceVersion && old.ProjectedBy != obs.ProjectedBy {
		kept := *obs
		kept.Watched = old.Watched
		w.records[key] = &kept // the same state, compared with another template
		return
	}
	switch {
	case w.gone[obs.UID], old == nil && versionOf(obs) <= w.seen,
		old != nil && (old.ResourceVersion == obs.ResourceVersion || !obs.NewerThan(old)):
		return
	}
	kept := *obs
	kept.Watched = false
	w.records[key] = &kept
}

// confirmGone drops an object that is known to be gone.
func (w *watch) confirmGone(key objects.Key, uid types.UID) {
	if old := w.records[key]; old != nil && old.UID == uid {
		delete(w.records, key)
		w.gone[uid] = true
	}
}

func versionOf(o *objects.Observed) int {
	v, _ := strconv.Atoi(o.ResourceVersion)
	return v
}
