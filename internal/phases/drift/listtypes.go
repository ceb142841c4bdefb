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

const (
	entryTypes  = 2000 // lists and maps that are learned from one entry; others count as unknown
	cachedTypes = 256  // bytes of an entry whose types are cached
)

// ListTypes are the list and map types of one object, by its own managedFields. Other objects are
// not a source, because every user with write access to an object can write its managedFields as
// well. A nil ListTypes has no types.
type ListTypes struct{ entries []*fieldTypes }

// fieldTypes are the types that one entry of managedFields shows.
type fieldTypes struct {
	lists map[pathID]list
	maps  map[pathID]mapEvidence
}

// ListTypesCache caches the types of entries by kind, because most objects of a kind have the same
// few entries. It is safe for concurrent use.
type ListTypesCache struct {
	mu    sync.RWMutex
	kinds map[schema.GroupKind]*kindCache
}

// kindCache has entries by the lowest bits of their hashes.
type kindCache [64]atomic.Pointer[cachedEntry]

type cachedEntry struct {
	hash uint64
	*fieldTypes
}

// NewListTypesCache returns an empty cache.
func NewListTypesCache() *ListTypesCache {
	return &ListTypesCache{kinds: map[schema.GroupKind]*kindCache{}}
}

// LearnListTypes returns the list types of an object with these managedFields.
func LearnListTypes(managedFields []metav1.ManagedFieldsEntry) *ListTypes {
	return NewListTypesCache().Learn(schema.GroupKind{}, managedFields)
}

// Learn is LearnListTypes for an object of a kind.
func (c *ListTypesCache) Learn(gk schema.GroupKind, managedFields []metav1.ManagedFieldsEntry) *ListTypes {
	var types ListTypes
	for i := range managedFields {
		fields := managedFields[i].FieldsV1
		if fields == nil || managedFields[i].Subresource != "" {
			continue // no template has a status
		}
		if e := c.of(gk).learn(fields.GetRawBytes()); len(e.lists) > 0 || len(e.maps) > 0 {
			types.entries = append(types.entries, e)
		}
	}

	if types.entries == nil {
		return nil
	}

	return &types
}

func (c *ListTypesCache) of(gk schema.GroupKind) *kindCache {
	c.mu.RLock()
	kind := c.kinds[gk]
	c.mu.RUnlock()
	if kind != nil {
		return kind
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds[gk] == nil {
		c.kinds[gk] = &kindCache{}
	}

	return c.kinds[gk]
}

// pathID is the hash of a field's path. It is the same for all elements of a list. The paths
// themselves would take most of the memory.
type pathID uint64

var (
	pathSeed = maphash.MakeSeed()
	rootPath = pathID(maphash.String(pathSeed, ""))
)

const elements = "[]"

// field returns the path of a field of p, or of its elements.
func field(p pathID, name string) pathID {
	// FNV-1a, with a random start per process.
	for i := range len(name) {
		p = (p ^ pathID(name[i])) * 1099511628211
	}
	return (p ^ 0xff) * 1099511628211
}

// list describes how elements of a list are identified.
type list struct {
	// keys are the sorted keys of an associative list; nil for a set.
	keys []string
}

// mapEvidence describes how managers own a field.
type mapEvidence uint8

const (
	asLeaf   mapEvidence = 1 << iota // as a whole, or empty
	asParent                         // by its fields
)

// list returns how elements of the list at a path are identified. known is false for lists that
// count as a whole.
func (t *ListTypes) list(path pathID) (shape list, known bool) {
	if t == nil {
		return list{}, false
	}

	for _, e := range t.entries {
		if shape, known = e.lists[path]; known {
			break
		}
	}

	return shape, known
}

// Keys returns the keys of the associative list at a path, or nil if they are unknown. The part []
// means the elements of a list.
func (t *ListTypes) Keys(path []string) []string {
	at := rootPath
	for _, part := range path {
		at = field(at, part)
	}
	shape, _ := t.list(at)
	return shape.keys
}

// whole reports whether the map at a path is owned as a whole, such as a label selector. A key that
// others add to it is drift.
func (t *ListTypes) whole(path pathID) bool {
	if t == nil {
		return false
	}
	var evidence mapEvidence
	for _, e := range t.entries {
		evidence |= e.maps[path]
	}
	return evidence == asLeaf
}

func (k *kindCache) learn(fields []byte) *fieldTypes {
	hash := maphash.Bytes(pathSeed, fields)
	place := &k[hash%uint64(len(k))]
	if known := place.Load(); known != nil && known.hash == hash {
		return known.fieldTypes
	}

	e := &fieldTypes{}
	set := fieldpath.NewSet()
	if set.FromJSON(bytes.NewReader(fields)) == nil {
		e.learnSet(set, rootPath)
	}
	if len(e.lists)+len(e.maps) <= cachedTypes {
		place.Store(&cachedEntry{hash, e})
	}

	return e
}

// learnSet learns from the fields below a path.
func (e *fieldTypes) learnSet(set *fieldpath.Set, path pathID) {
	for element := range set.Members.All() {
		if _, isParent := set.Children.Get(element); !isParent && !isFreeform(element, path) {
			e.learnElement(element, path, asLeaf)
		}
	}

	for element := range set.Children.All() {
		if isFreeform(element, path) {
			continue
		}
		child, _ := set.Children.Get(element)
		e.learnSet(child, e.learnElement(element, path, asParent))
	}
}

// isFreeform reports whether an element is a field of the object with any number of keys, such as
// data. Such a map is always compared by its keys.
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

// record sets the knowledge of a path, unless the limit is reached.
func record[V any](all *map[pathID]V, path pathID, value V) {
	if *all == nil {
		*all = map[pathID]V{}
	}
	if _, known := (*all)[path]; known || len(*all) < entryTypes {
		(*all)[path] = value
	}
}

// learnElement learns from one element of a map or list, and returns its path.
func (e *fieldTypes) learnElement(element fieldpath.PathElement, parent pathID, evidence mapEvidence) pathID {
	var shape list
	switch {
	case element.FieldName != nil:
		path := field(parent, *element.FieldName)
		record(&e.maps, path, e.maps[path]|evidence)
		return path
	case element.Key != nil:
		for _, key := range *element.Key {
			shape.keys = append(shape.keys, key.Name)
		}
	}

	if element.Value != nil || len(shape.keys) > 0 {
		record(&e.lists, parent, shape)
	}

	return field(parent, elements)
}
