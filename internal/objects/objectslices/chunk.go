package objectslices

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// byRank cuts a run of objects that does not fit into one slice at the boundary of the lowest rank,
// and repeats this with both parts.
func byRank(items []item) [][]item {
	if len(items) == 0 {
		return nil
	}
	if len(items) == 1 || size(items) <= limits.SliceBytes {
		return [][]item{items}
	}

	lowest := 0
	for i := range items[:len(items)-1] {
		if items[i].rank < items[lowest].rank {
			lowest = i
		}
	}

	return append(byRank(items[:lowest+1]), byRank(items[lowest+1:])...)
}

// nextFit fills one slice after the other, as Package Operator does. It makes fewer slices, but a
// change rewrites every slice behind it.
func nextFit(items []item) [][]item {
	var chunks [][]item
	begin, filled := 0, 0
	for i := range items {
		if i > begin && filled+len(items[i].json) > limits.SliceBytes {
			chunks = append(chunks, items[begin:i])
			begin, filled = i, 0
		}
		filled += len(items[i].json)
	}

	if begin < len(items) {
		chunks = append(chunks, items[begin:])
	}

	return chunks
}

// rank hashes the name of an object, regardless of its API version. A hash has no order, unlike
// names, which often count up.
func rank(key objects.Key) uint64 {
	sum := sha256.Sum256([]byte(key.String()))
	return binary.BigEndian.Uint64(sum[:])
}

// keyOf returns the key of an object.
func keyOf(raw []byte) (objects.Key, error) {
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}

	if err := json.Unmarshal(raw, &object); err != nil {
		return objects.Key{}, fmt.Errorf("cannot read apiVersion, kind and name: %w", err)
	}

	return objects.Key{
		Group: schema.FromAPIVersionAndKind(object.APIVersion, object.Kind).Group, Kind: object.Kind,
		Namespace: object.Metadata.Namespace, Name: object.Metadata.Name,
	}, nil
}
