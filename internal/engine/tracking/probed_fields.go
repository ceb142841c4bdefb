package tracking

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/probes"
)

// probedFields are the fields that records keep for probes, by kind.
type probedFields struct {
	mu         sync.RWMutex
	kinds      map[schema.GroupKind]*fieldSet
	generation uint32 // of the last fieldSet that has grown
}

// fieldSet are the fields of one kind.
type fieldSet struct {
	owners map[objects.OwnerKey]ownerFields
	all    probes.Needs // the union of owners
	// generation grows where all has a field that records lacked so far; see
	// objects.Observed.FieldsGeneration.
	generation uint32
}

// ownerFields are the fields of one owner, and the generation from which on records
// have them.
type ownerFields struct {
	probes.Needs
	since uint32
}

// Probe declares the fields that an owner's probes read. It returns from which
// generation on records have them; older ones have to be listed again.
func (p *probedFields) Probe(owner objects.OwnerKey, needs map[schema.GroupKind]probes.Needs) map[schema.GroupKind]uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := make(map[schema.GroupKind]uint32, len(needs))
	for gk, wanted := range needs {
		since[gk] = p.declare(gk, owner, wanted)
	}
	for gk, set := range p.kinds {
		_, still := needs[gk]
		if _, known := set.owners[owner]; still || !known {
			continue
		}
		delete(set.owners, owner)
		set.join()
		if len(set.owners) == 0 {
			delete(p.kinds, gk)
		}
	}
	return since
}

func (p *probedFields) declare(gk schema.GroupKind, owner objects.OwnerKey, wanted probes.Needs) uint32 {
	set := p.kinds[gk]
	if set == nil {
		set = &fieldSet{owners: map[objects.OwnerKey]ownerFields{}}
		p.kinds[gk] = set
	}
	own, known := set.owners[owner]
	covered := known && own.Covers(wanted)
	if covered && wanted.Covers(own.Needs) {
		return own.since
	}
	if !covered {
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

// trim returns the JSON of the probed fields of an object, and their generation.
func (p *probedFields) trim(gk schema.GroupKind, object map[string]any) (trimmed []byte, generation uint32) {
	p.mu.RLock()
	set := p.kinds[gk]
	if set == nil {
		p.mu.RUnlock()
		return nil, 0
	}
	all, generation := set.all, set.generation
	p.mu.RUnlock()
	return probes.Trim(object, all), generation
}
