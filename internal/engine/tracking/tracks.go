package tracking

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

// track is the template that one object is compared with.
type track struct {
	*tracked
	desired  *objects.Desired
	template objects.Digest
}

// tracked is shared by objects that were tracked in succession.
type tracked struct {
	owner    objects.OwnerKey
	metadata objects.ManagedMetadata
}

func (t *tracks) add(owner objects.OwnerKey, d *objects.Desired, metadata objects.ManagedMetadata, template objects.Digest) {
	if last := t.last; last == nil || last.owner != owner || last.metadata.Revision != metadata.Revision ||
		last.metadata.Owner != metadata.Owner || last.metadata.Unnumbered != metadata.Unnumbered || !maps.Equal(last.metadata.Labels, metadata.Labels) {
		t.last = &tracked{owner: owner, metadata: metadata}
	}
	t.byKey[d.Key] = track{tracked: t.last, desired: d, template: template}
}

// of returns the track of an object if it is the owner's.
func (t *tracks) of(owner objects.OwnerKey, key objects.Key) (track, bool) {
	tr, ok := t.byKey[key]
	return tr, ok && tr.owner == owner
}
