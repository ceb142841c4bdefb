package drift

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const shapesPerKind = 2000 // lists and maps that are remembered per kind; the rest counts as unknown

// ListTypes are the list and map types of kinds, a few kilobytes each. It is safe for
// concurrent use.
type ListTypes struct {
	mu    sync.RWMutex
	kinds map[schema.GroupKind]*KindListTypes
}

// NewListTypes returns empty ListTypes.
func NewListTypes() *ListTypes { return &ListTypes{kinds: map[schema.GroupKind]*KindListTypes{}} }

// Of returns those of one kind.
func (s *ListTypes) Of(gk schema.GroupKind) *KindListTypes {
	s.mu.RLock()
	kind := s.kinds[gk]
	s.mu.RUnlock()
	if kind != nil {
		return kind
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds[gk] == nil {
		s.kinds[gk] = &KindListTypes{lists: map[pathID]list{}, maps: map[pathID]mapEvidence{}}
	}
	return s.kinds[gk]
}

// Learn learns from the managedFields of a live object of a kind, before the object is
// projected.
func (s *ListTypes) Learn(gk schema.GroupKind, managedFields []metav1.ManagedFieldsEntry) {
	kind := s.Of(gk)
	for i := range managedFields {
		entry := &managedFields[i]
		// No template has a status.
		if entry.FieldsV1 != nil && entry.Subresource == "" {
			kind.learn(entry.FieldsV1.GetRawBytes())
		}
	}
}

// KindListTypes are the list and map types of one kind, in all of its versions. A nil
// KindListTypes has none.
type KindListTypes struct {
	mu    sync.RWMutex
	lists map[pathID]list
	maps  map[pathID]mapEvidence
	// seen caches hashes of entries that were learned from, by their lowest bits.
	seen [64]atomic.Uint64
}

// pathID is the hash of a field's path, the same for all elements of a list. The paths
// themselves would be most of the memory.
type pathID uint64

var (
	pathSeed = maphash.MakeSeed()
	rootPath = pathID(maphash.String(pathSeed, ""))
)

const elements = "[]"

// field returns the path of a field of p, or of its elements.
func field(p pathID, name string) pathID {
	// FNV-1a, from a start that is random per process.
	for i := range len(name) {
		p = (p ^ pathID(name[i])) * 1099511628211
	}
	return (p ^ 0xff) * 1099511628211
}

// list is how elements of a list are identified.
type list struct {
	// keys of an associative list, sorted; nil for a set.
	keys []string
}

// mapEvidence is how managers own a field.
type mapEvidence uint8

const (
	asLeaf   mapEvidence = 1 << iota // as a whole, or empty
	asParent                         // by its fields
)

// list returns how elements of the list at a path are identified. known is false for
// lists that count as a whole.
func (k *KindListTypes) list(path pathID) (shape list, known bool) {
	if k == nil {
		return list{}, false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	shape, known = k.lists[path]
	return shape, known
}

// Keys returns the keys of the associative list at a path, with [] as the part for elements of lists; nil where they are not known.
func (k *KindListTypes) Keys(path []string) []string {
	at := rootPath
	for _, part := range path {
		at = field(at, part)
	}
	shape, _ := k.list(at)
	return shape.keys
}

// whole reports whether the map at a path is owned as a whole, such as a label selector:
// a key that others add to it is drift.
func (k *KindListTypes) whole(path pathID) bool {
	if k == nil {
		return false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.maps[path] == asLeaf
}

func (k *KindListTypes) learn(fields []byte) {
	hash := maphash.Bytes(pathSeed, fields)
	place := &k.seen[hash%uint64(len(k.seen))]
	if place.Load() == hash {
		return
	}
	set := fieldpath.NewSet()
	if set.FromJSON(bytes.NewReader(fields)) == nil {
		k.mu.Lock()
		k.learnSet(set, rootPath)
		k.mu.Unlock()
	}
	place.Store(hash)
}

// learnSet learns from the fields below a path. The caller holds k.mu.
func (k *KindListTypes) learnSet(set *fieldpath.Set, path pathID) {
	for element := range set.Members.All() {
		if _, isParent := set.Children.Get(element); !isParent && !isFreeform(element, path) {
			k.learnElement(element, path, asLeaf)
		}
	}
	for element := range set.Children.All() {
		if isFreeform(element, path) {
			continue
		}
		child, _ := set.Children.Get(element)
		k.learnSet(child, k.learnElement(element, path, asParent))
	}
}

// isFreeform reports whether an element is a field of the object that is compared by
// its keys alone; maps of data have any number of them.
func isFreeform(element fieldpath.PathElement, parent pathID) bool {
	if parent != rootPath || element.FieldName == nil {
		return false
	}
	switch *element.FieldName {
	case "metadata", "status", "data", "stringData", "binaryData":
		return true
	}
	return false
}

// record sets the knowledge of a path, unless there is too much already.
func record[V any](all map[pathID]V, path pathID, value V) {
	if _, known := all[path]; known || len(all) < shapesPerKind {
		all[path] = value
	}
}

// learnElement learns from one element of a map or list, and returns its path.
func (k *KindListTypes) learnElement(element fieldpath.PathElement, parent pathID, evidence mapEvidence) pathID {
	var shape list
	switch {
	case element.FieldName != nil:
		path := field(parent, *element.FieldName)
		record(k.maps, path, k.maps[path]|evidence)
		return path
	case element.Key != nil:
		for _, key := range *element.Key {
			shape.keys = append(shape.keys, key.Name)
		}
	}
	if element.Value != nil || len(shape.keys) > 0 {
		record(k.lists, parent, shape)
	}
	return field(parent, elements)
}
