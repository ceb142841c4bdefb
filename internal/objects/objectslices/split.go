package objectslices

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// Slice is the content of one ObjectSlice, or of the Secret that replaces it.
type Slice struct {
	// Name consists of the deployment's name and a hash of the objects.
	Name string
	// Objects are in their original order.
	Objects []corev1alpha1.ObjectSetObject
	// Key is the key of the hash in the Secret's name; nil for an ObjectSlice.
	Key []byte
}

// Split moves objects of a revision into slices. Objects that sealing selects always move, into
// Secrets. Others move if strategy requires it: a value of the chunking strategy annotation, or
// empty for the default. Split returns the phases for the deployment's template, and each slice
// once, ordered by its first use. sealing is nil if the revision has no sensitive values. Split
// does not change its arguments.
func Split(
	deployment, strategy string, phases []corev1alpha1.ObjectSetTemplatePhase, sealing *Sealing,
) ([]corev1alpha1.ObjectSetTemplatePhase, []Slice, error) {
	plain, sealed := make([][]item, len(phases)), make([][]item, len(phases))
	total, count := 0, 0
	for i := range phases {
		items, err := measure(phases[i].Objects)
		if err != nil {
			return nil, nil, fmt.Errorf("phase %q: %w", phases[i].Name, err)
		}
		plain[i], sealed[i] = sealing.part(i, items)
		total, count = total+size(plain[i]), count+len(items)
	}

	strategy = bounded(strategy, total, count)
	none, each := strategy == corev1alpha1.ChunkingStrategyNoOp, strategy == corev1alpha1.ChunkingStrategyEachObject
	inline := none || total <= limits.SliceThreshold && !each
	split, cut, made := make([]corev1alpha1.ObjectSetTemplatePhase, len(phases)), cutterOf(strategy), made{}
	for i := range phases {
		split[i] = phases[i]
		if len(sealed[i]) > 0 {
			split[i].Objects, split[i].SecretSlices = contents(plain[i]), nil
			for _, chunk := range cut(sealed[i]) {
				slice, err := sealing.seal(deployment, chunk)
				if err != nil {
					return nil, nil, fmt.Errorf("phase %q: %w", phases[i].Name, err)
				}
				split[i].SecretSlices = append(split[i].SecretSlices, made.add(slice))
			}
		}
		if inline || !each && size(plain[i]) <= limits.SliceThreshold/len(phases) {
			continue
		}
		split[i].Objects, split[i].Slices = nil, nil
		for _, chunk := range cut(plain[i]) {
			split[i].Slices = append(split[i].Slices, made.add(Slice{Name: nameOf(deployment, chunk), Objects: contents(chunk)}))
		}
	}

	return split, made.slices, nil
}

// bounded returns the strategy for this many bytes and objects. It drops the annotation's strategy
// if that would make a revision too large for API servers.
func bounded(strategy string, total, count int) string {
	switch {
	case strategy == corev1alpha1.ChunkingStrategyNoOp && total > limits.SlicelessBytes:
		return ""
	case strategy == corev1alpha1.ChunkingStrategyEachObject && count > limits.SlicesOfOneObject:
		return ""
	}
	return strategy
}

// made collects the slices so far.
type made struct {
	slices []Slice
	seen   map[string]bool
}

// add adds a slice, unless one with the same content exists, and returns its name.
func (m *made) add(s Slice) string {
	if m.seen == nil {
		m.seen = map[string]bool{}
	}
	if !m.seen[s.Name] {
		m.seen[s.Name] = true
		m.slices = append(m.slices, s)
	}
	return s.Name
}

// cutterOf returns the function that cuts a phase into chunks. An unknown strategy means the
// default, as in Package Operator.
func cutterOf(strategy string) func([]item) [][]item {
	switch strategy {
	case corev1alpha1.ChunkingStrategyEachObject:
		return func(items []item) [][]item { return slices.Collect(slices.Chunk(items, 1)) }
	case corev1alpha1.ChunkingStrategyBinpackNextFit:
		return nextFit
	}
	return byRank
}

// item is one object with its measures.
type item struct {
	object corev1alpha1.ObjectSetObject
	json   []byte
	rank   uint64
	secret bool
}

// measure encodes objects and ranks the boundaries behind them.
func measure(objects []corev1alpha1.ObjectSetObject) ([]item, error) {
	items := make([]item, len(objects))
	for i := range objects {
		encoded, err := json.Marshal(&objects[i])
		if err != nil {
			return nil, fmt.Errorf("object %d is not valid JSON: %w", i, err)
		}
		key, err := keyOf(objects[i].Object.Raw)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i, err)
		}
		items[i] = item{object: objects[i], json: encoded, rank: rank(key), secret: key.Group == "" && key.Kind == "Secret"}
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
	if len(items) == 0 {
		return nil
	}
	objects := make([]corev1alpha1.ObjectSetObject, len(items))
	for i := range items {
		objects[i] = items[i].object
	}
	return objects
}

// maxName is the longest name that the API server accepts.
const maxName = 253

// nameOf returns the name of the deployment's slice that holds these items.
func nameOf(deployment string, items []item) string {
	hash := sha256.New()
	for i := range items {
		hash.Write(items[i].json)
		hash.Write([]byte{'\n'}) // never part of compact JSON
	}
	return named(deployment, hash.Sum(nil)[:8])
}

// named returns the name of a slice of a deployment.
func named(deployment string, hash []byte) string {
	suffix := "-" + hex.EncodeToString(hash)
	if most := maxName - len(suffix); len(deployment) > most {
		deployment = deployment[:most]
	}
	return deployment + suffix
}
