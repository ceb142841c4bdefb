package tracking

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/probes"
)

// probedFields are the fields that records keep for probes, by kind, and by the namespace whose
// owners read them: fields that one namespace reads are kept only for its own objects. Owners of
// the cluster, and of other clusters, read objects of any namespace; their namespace is "".
type probedFields struct {
	mu         sync.RWMutex
	kinds      map[schema.GroupKind]map[string]*fieldSet
	generation uint32 // of the last fieldSet that has grown
}

// fieldSet are the fields of one kind that the owners of one namespace read.
type fieldSet struct {
	owners map[objects.OwnerKey]ownerFields
	all    probes.Needs // the union of owners
	// generation grows if all gets a field that records lacked so far; see
	// objects.Observed.FieldsGeneration.
	generation uint32
}

// ownerFields are the fields of one owner, and the generation from which on records
// have them.
type ownerFields struct {
	probes.Needs
	since uint32
}

// Probe declares the fields that an owner's probes read of objects in a namespace, "" for any. It
// returns the generation from which on records have them; older records have to be listed again.
func (p *probedFields) Probe(owner objects.OwnerKey, namespace string, needs map[schema.GroupKind]probes.Needs) map[schema.GroupKind]uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := make(map[schema.GroupKind]uint32, len(needs))
	for gk, wanted := range needs {
		since[gk] = p.declare(gk, owner, namespace, wanted)
	}

	for gk := range p.kinds {
		set := p.kinds[gk][namespace]
		if set == nil {
			continue
		}
		_, still := needs[gk]
		if _, known := set.owners[owner]; still || !known {
			continue
		}
		delete(set.owners, owner)
		set.join()
		if len(set.owners) == 0 {
			delete(p.kinds[gk], namespace)
		}
		if len(p.kinds[gk]) == 0 {
			delete(p.kinds, gk)
		}
	}

	return since
}

func (p *probedFields) declare(gk schema.GroupKind, owner objects.OwnerKey, namespace string, wanted probes.Needs) uint32 {
	if p.kinds[gk] == nil {
		p.kinds[gk] = map[string]*fieldSet{}
	}

	set := p.kinds[gk][namespace]
	if set == nil {
		set = &fieldSet{owners: map[objects.OwnerKey]ownerFields{}}
		p.kinds[gk][namespace] = set
	}

	own, known := set.owners[owner]
	covered := known && own.Covers(wanted)
	if covered && wanted.Covers(own.Needs) {
		return own.since
	}

	if !covered {
		// Fields that other owners read are in the records already, so they need no new list.
		if set.generation == 0 || !set.all.Covers(wanted) {
			p.generation++
			set.generation = p.generation
		}
		own.since = set.generation
	}

	own.Needs = wanted
	set.owners[owner] = own
	if known {
		set.join()
	} else {
		set.all = set.all.Union(wanted)
	}

	return own.since
}

func (s *fieldSet) join() {
	s.all = probes.Needs{}
	for _, own := range s.owners {
		s.all = s.all.Union(own.Needs)
	}
}

// fields returns the fields that are read of the objects of a kind in a namespace, and their
// generation; 0 if none are.
func (p *probedFields) fields(gk schema.GroupKind, namespace string) (needs probes.Needs, generation uint32) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	sets := p.kinds[gk]
	if all := sets[""]; all != nil {
		needs, generation = all.all, all.generation
	}

	if own := sets[namespace]; own != nil && namespace != "" {
		if generation == 0 {
			return own.all, own.generation
		}
		needs, generation = needs.Union(own.all), max(generation, own.generation)
	}

	return needs, generation
}

// kept are the objects with large records, as reported to Tracker.Keep.
type kept struct {
	mu   sync.Mutex
	keys sets.Set[objects.Key]
}

// keep trims a live object to the fields that are read, if there is room for them.
func (t *Tracker) keep(key objects.Key, object map[string]any, obs *objects.Observed) {
	var needs probes.Needs
	if needs, obs.FieldsGeneration = t.fields(key.GroupKind(), key.Namespace); obs.FieldsGeneration == 0 {
		t.release(key)
		return
	}

	trimmed := probes.Trim(object, needs)
	switch {
	case len(trimmed) <= limits.RecordSmallBytes:
		t.release(key)
	case len(trimmed) > limits.RecordBytes:
		t.release(key)
		obs.Lack = objects.LackTooLarge
		return
	case !t.grow(key, int64(len(trimmed))):
		t.release(key)
		obs.Lack = objects.LackRoom
		return
	}

	obs.Trimmed = trimmed
}

// grow reports whether a record can have this size.
func (t *Tracker) grow(key objects.Key, bytes int64) bool {
	if t.Keep == nil {
		return true
	}

	t.kept.mu.Lock()
	defer t.kept.mu.Unlock()
	if !t.Keep(key, bytes) {
		return false
	}

	t.kept.keys.Insert(key)
	return true
}

// release reports that a record has become small.
func (t *Tracker) release(key objects.Key) {
	if t.Keep == nil {
		return
	}

	t.kept.mu.Lock()
	defer t.kept.mu.Unlock()
	if t.kept.keys.Has(key) {
		t.kept.keys.Delete(key)
		t.Keep(key, 0)
	}
}
