package slicing

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// Slice is the content of one ObjectSlice.
type Slice struct {
	// Name is made of the deployment's name and the hash of the objects.
	Name string
	// Objects in their order.
	Objects []corev1alpha1.ObjectSetObject
}

// Split moves objects of a revision into slices where that is due by strategy: a
// value of the chunking strategy annotation, or empty. It returns the phases as
// the deployment's template holds them, and the slices in the order in which the
// phases name them, each once. The phases passed in stay as they are.
func Split(
	deployment, strategy string, phases []corev1alpha1.ObjectSetTemplatePhase,
) ([]corev1alpha1.ObjectSetTemplatePhase, []Slice, error) {
	if strategy == corev1alpha1.ChunkingStrategyNoOp {
		return phases, nil, nil
	}
	measured := make([][]item, len(phases))
	total := 0
	for i := range phases {
		items, err := measure(phases[i].Objects)
		if err != nil {
			return nil, nil, fmt.Errorf("phase %q: %w", phases[i].Name, err)
		}
		measured[i] = items
		total += size(items)
	}
	each := strategy == corev1alpha1.ChunkingStrategyEachObject
	if total <= limits.SliceThreshold && !each {
		return phases, nil, nil
	}

	cut := cutterOf(strategy)
	split := make([]corev1alpha1.ObjectSetTemplatePhase, len(phases))
	var slices []Slice
	seen := map[string]bool{}
	for i := range phases {
		split[i] = phases[i]
		if !each && size(measured[i]) <= limits.SliceThreshold/len(phases) {
			continue
		}
		split[i].Objects, split[i].Slices = nil, nil
		for _, chunk := range cut(measured[i]) {
			slice := Slice{Name: nameOf(deployment, chunk), Objects: contents(chunk)}
			split[i].Slices = append(split[i].Slices, slice.Name)
			if !seen[slice.Name] {
				seen[slice.Name] = true
				slices = append(slices, slice)
			}
		}
	}
	return split, slices, nil
}

// cutterOf returns the function that cuts a phase into chunks. A strategy that is
// not known counts as none, as with Package Operator.
func cutterOf(strategy string) func([]item) [][]item {
	switch strategy {
	case corev1alpha1.ChunkingStrategyEachObject:
		return each
	case corev1alpha1.ChunkingStrategyBinpackNextFit:
		return nextFit
	}
	return byRank
}

// item is one object with what is measured of it.
type item struct {
	object corev1alpha1.ObjectSetObject
	json   []byte
	rank   uint64
}

// measure encodes objects and ranks the boundaries behind them.
func measure(objects []corev1alpha1.ObjectSetObject) ([]item, error) {
	items := make([]item, len(objects))
	for i := range objects {
		encoded, err := json.Marshal(&objects[i])
		if err != nil {
			return nil, fmt.Errorf("object %d is not valid JSON: %w", i, err)
		}
		rank, err := rank(objects[i].Object.Raw)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i, err)
		}
		items[i] = item{object: objects[i], json: encoded, rank: rank}
	}
	return items, nil
}

func size(items []item) int {
	total := 0
	for i := range items {
		total += len(items[i].json)
	}
	return total
}

func contents(items []item) []corev1alpha1.ObjectSetObject {
	objects := make([]corev1alpha1.ObjectSetObject, len(items))
	for i := range items {
		objects[i] = items[i].object
	}
	return objects
}

// maxName is the length of a name that the API server accepts.
const maxName = 253

// nameOf returns the name of the slice of a deployment that holds these items.
func nameOf(deployment string, items []item) string {
	hash := sha256.New()
	for i := range items {
		hash.Write(items[i].json)
		hash.Write([]byte{'\n'}) // not part of compact JSON
	}
	suffix := "-" + hex.EncodeToString(hash.Sum(nil)[:8])
	if most := maxName - len(suffix); len(deployment) > most {
		deployment = deployment[:most]
	}
	return deployment + suffix
}
