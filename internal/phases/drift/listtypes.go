package drift

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
)

// Shapes remembers how the API server merges the lists and maps of each kind.
// It is safe for concurrent use. The knowledge is about a kind, not about an
// object, and needs a few kilobytes per kind.
type Shapes struct {
	mu    sync.RWMutex
	kinds map[schema.GroupKind]*KindShapes
}

// NewShapes returns Shapes that know nothing.
func NewShapes() *Shapes { return &Shapes{kinds: map[schema.GroupKind]*KindShapes{}} }

// Of returns what is known of one kind. It goes on learning and is safe for
// concurrent use.
func (s *Shapes) Of(gk schema.GroupKind) *KindShapes {
	s.mu.RLock()
	kind := s.kinds[gk]
	s.mu.RUnlock()
	if kind != nil {
		return kind
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds[gk] == nil {
		s.kinds[gk] = &KindShapes{lists: map[pathID]list{}, maps: map[pathID]mapEvidence{}}
	}
	return s.kinds[gk]
}

// Learn takes in the managedFields of a live object of a kind. It has to come
// before the object is projected. Entries like one that was seen lately cost
// next to nothing.
func (s *Shapes) Learn(gk schema.GroupKind, managedFields []metav1.ManagedFieldsEntry) {
	kind := s.Of(gk)
	for i := range managedFields {
		entry := &managedFields[i]
		// No template has a status.
		if entry.FieldsV1 != nil && entry.Subresource == "" {
			kind.learn(entry.FieldsV1.GetRawBytes())
		}
	}
}

// KindShapes is what is known of one kind. A nil KindShapes knows nothing. The
// versions of a kind share it: the API server converts between them, and lists
// that differ in keys do not convert.
type KindShapes struct {
	mu    sync.RWMutex
	lists map[pathID]list
	maps  map[pathID]mapEvidence
	// seen holds hashes of entries that taught nothing new: a small cache with
	// one place per value of the lowest bits.
	seen [64]atomic.Uint64
}

// pathID names a field by the hash of its path, the same for all elements of a
// list: kinds have hundreds of fields, and their paths would be most of the
// memory.
type pathID uint64

var (
	pathSeed = maphash.MakeSeed()
	rootPath = pathID(maphash.String(pathSeed, ""))
)

const elements = "[]"

// field returns the path of a field of p; elements stands for all elements of a
// list.
func field[T string | []byte](p pathID, name T) pathID {
	// FNV-1a, from a start that is random per process.
	for i := range len(name) {
		p = (p ^ pathID(name[i])) * 1099511628211
	}
	return (p ^ 0xff) * 1099511628211
}

// list is how elements of a list are told apart.
type list struct {
	// keys of an associative list, sorted; nil for a set.
	keys []string
}

// mapEvidence is how managers listed a field.
type mapEvidence uint8

const (
	// asLeaf: as a whole. A scalar, a list or map that is owned as a whole, or an
	// empty one.
	asLeaf mapEvidence = 1 << iota
	// asParent: by what is in it.
	asParent
)

// list returns how elements of the list at a path are told apart. known is
// false for lists that count as a whole.
func (k *KindShapes) list(path pathID) (shape list, known bool) {
	if k == nil {
		return list{}, false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	shape, known = k.lists[path]
	return shape, known
}

// whole reports whether the map at a path is owned as a whole, such as a label
// selector: a key that others add to it is drift. The managers of a non-empty
// map that is owned key by key are listed with its keys.
func (k *KindShapes) whole(path pathID) bool {
	if k == nil {
		return false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.maps[path] == asLeaf
}

func (k *KindShapes) learn(fields []byte) {
	hash := maphash.Bytes(pathSeed, fields)
	place := &k.seen[hash%uint64(len(k.seen))]
	if place.Load() == hash {
		return
	}
	if found := k.read(fields); !found.none() {
		k.keep(found)
	}
	place.Store(hash)
}

// findings is what one entry shows that is not known.
type findings struct {
	lists   map[pathID]list
	leaves  []pathID
	parents []pathID
}

func (f *findings) none() bool { return len(f.lists)+len(f.leaves)+len(f.parents) == 0 }

func (k *KindShapes) read(fields []byte) *findings {
	k.mu.RLock()
	defer k.mu.RUnlock()
	reader := fieldsReader{text: fields, known: k}
	reader.fields(rootPath, 0)
	return &reader.found
}

func (k *KindShapes) keep(found *findings) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for path, shape := range found.lists {
		if _, known := k.lists[path]; known || len(k.lists) < limits.ShapesPerKind {
			k.lists[path] = shape
		}
	}
	k.mark(found.leaves, asLeaf)
	k.mark(found.parents, asParent)
}

func (k *KindShapes) mark(paths []pathID, evidence mapEvidence) {
	for _, path := range paths {
		if _, known := k.maps[path]; known || len(k.maps) < limits.ShapesPerKind {
			k.maps[path] |= evidence
		}
	}
}
