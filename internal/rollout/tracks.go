package rollout

import (
	"maps"

	"lockstep.run/lockstep/internal/objects"
)

// tracks are the owners and templates that objects are compared with. They are not safe
// for concurrent use.
type tracks struct {
	byKey map[objects.Key]track
	last  *tracked
}

// track is what one object is compared with.
type track struct {
	*tracked
	desired  *objects.Desired
	template objects.Digest
}

// tracked is shared by objects that were tracked in succession.
type tracked struct {
	owner objects.OwnerKey
	stamp objects.Stamp
}

func (t *tracks) add(owner objects.OwnerKey, d *objects.Desired, stamp objects.Stamp, template objects.Digest) {
	if last := t.last; last == nil || last.owner != owner || last.stamp.Revision != stamp.Revision ||
		last.stamp.Owner != stamp.Owner || !maps.Equal(last.stamp.Labels, stamp.Labels) {
		t.last = &tracked{owner: owner, stamp: stamp}
	}
	t.byKey[d.Key] = track{tracked: t.last, desired: d, template: template}
}

// of returns the track of an object if it is the owner's.
func (t *tracks) of(owner objects.OwnerKey, key objects.Key) (track, bool) {
	tr, ok := t.byKey[key]
	return tr, ok && tr.owner == owner
}
