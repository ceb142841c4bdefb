package drift

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/util/json"

	"lockstep.run/lockstep/internal/objects"
)

// Digest returns the SHA-256, truncated to 16 bytes, of the canonical JSON of value. It panics on
// values that encoding/json cannot encode.
func Digest(value any) objects.Digest {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.buf = e.buf[:0]
	e.value(value)
	return e.digest()
}

// Hash returns 10 characters for the name of an object, derived from the Digest of value: 27¹⁰
// values. The alphabet has no vowels, so that no words come out.
func Hash(value any) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	digest := Digest(value)
	number := binary.BigEndian.Uint64(digest[:])
	var text [10]byte
	for i := range text {
		text[i] = alphabet[number%uint64(len(alphabet))]
		number /= uint64(len(alphabet))
	}

	return string(text[:])
}

// ContentDigest returns the digest of a template without the metadata that the engine sets: its
// labels, revision and owners. Templates of equal content need no write for a new revision.
func ContentDigest(names *objects.Names, obj map[string]any) objects.Digest {
	metadata, isMap := obj["metadata"].(map[string]any)
	if !isMap {
		return Digest(obj)
	}

	content, metadata := maps.Clone(obj), maps.Clone(metadata)
	content["metadata"] = metadata
	delete(metadata, "ownerReferences")
	without(metadata, "labels", names.ManagedLabel)
	without(metadata, "labels", names.InheritedLabels...)
	without(metadata, "annotations", names.RevisionAnnotation, names.OwnersAnnotation)
	return Digest(content)
}

// without replaces the map at field by one without some keys, or removes it if it becomes empty.
func without(metadata map[string]any, field string, keys ...string) {
	values, isMap := metadata[field].(map[string]any)
	if !isMap {
		return
	}

	values = maps.Clone(values)
	for _, key := range keys {
		delete(values, key)
	}
	if metadata[field] = values; len(values) == 0 {
		delete(metadata, field)
	}
}

var encoders = sync.Pool{New: func() any { return &encoder{buf: make([]byte, 0, 1<<10), keys: make([]string, 0, 32)} }}

func (e *encoder) digest() objects.Digest {
	sum := sha256.Sum256(e.buf)
	e.release()
	return objects.Digest(sum[:len(objects.Digest{})])
}

// release drops large values that a pooled encoder should not keep in memory.
func (e *encoder) release() {
	clear(e.keys[:cap(e.keys)])
	e.keys = e.keys[:0]
	if cap(e.buf) > 64<<10 {
		e.buf = nil
	}
}

// unmarshal decodes like the API machinery: whole numbers become int64.
func unmarshal(text []byte, into any) error { return json.Unmarshal(text, into) }
