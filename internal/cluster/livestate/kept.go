package livestate

import (
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
)

// Records are what is known of the objects of one kind, by events and by own writes, for
// other implementations of a cluster. The caller locks them.
type Records struct{ records records }

// NewRecords returns empty records.
func NewRecords() *Records { return &Records{newRecords()} }

// Get returns the record of an object.
func (r *Records) Get(key objects.Key) (*objects.Observed, bool) {
	obs, ok := r.records.byName[nameOf(key)]
	return obs, ok
}

// Put stores what an event shows, and reports whether that is news.
func (r *Records) Put(key objects.Key, obs *objects.Observed) bool {
	return r.records.put(nameOf(key), obs)
}

// Remove drops what a DELETED event names, and reports whether that is news.
func (r *Records) Remove(key objects.Key, uid types.UID, resourceVersion string) bool {
	return r.records.remove(nameOf(key), uid, resourceVersion)
}

// Replace takes over a list of all objects, and calls changed for what is news.
func (r *Records) Replace(list map[objects.Key]*objects.Observed, resourceVersion string, changed func(namespace, name string, obs *objects.Observed)) {
	all := make([]change, 0, len(list))
	for key, obs := range list {
		all = append(all, change{nameOf(key), obs})
	}
	for _, c := range r.records.replace(all, resourceVersion) {
		changed(c.name.namespace, c.name.name, c.obs)
	}
}

// Remember stores the response to an own request.
func (r *Records) Remember(key objects.Key, obs *objects.Observed) {
	r.records.remember(nameOf(key), obs)
}

// Gone drops an object whose deletion was confirmed.
func (r *Records) Gone(key objects.Key, uid types.UID) { r.records.confirmGone(nameOf(key), uid) }

// Passed reports whether the records are from a resource version or later.
func (r *Records) Passed(resourceVersion string) bool {
	return r.records.progress.Reached(resourceVersion)
}
