package rollout

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/livestate"
	"lockstep.run/lockstep/internal/objects"
)

// Mapped returns the conditions that the objects in keys report by their
// condition mappings, under the destination's type (reference 6.7). A condition
// of an older generation of its object is left out; of two objects with one
// destination the later one in the order of the phases counts.
func (r *Revision) Mapped(live *livestate.Cache, keys []objects.Key) []metav1.Condition {
	var mapped []metav1.Condition
	for _, key := range keys {
		d, _ := r.Find(key)
		if d == nil || len(d.Mappings) == 0 {
			continue
		}
		obs, ok := live.Get(key)
		if !ok || obs.Trimmed == nil {
			continue
		}
		var object struct {
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		if err := json.Unmarshal(obs.Trimmed, &object); err != nil {
			continue // the conditions of that kind have another shape
		}
		for _, c := range object.Status.Conditions {
			for _, m := range d.Mappings {
				if c.Type == m.SourceType && (c.ObservedGeneration == 0 || c.ObservedGeneration == obs.Generation) {
					c.Type = m.DestinationType
					mapped = append(mapped, c)
					break
				}
			}
		}
	}
	return mapped
}
