package objectsets

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// Mapped returns the conditions that the objects in keys report by their condition mappings, under
// the destination's type, and the number of omitted ones. It skips conditions of an older
// generation. If two objects have the same destination, the later one in the order of the phases
// wins. Invalid conditions are made valid.
func Mapped(r *engine.Revision, live cluster.Cluster, keys []objects.Key) (mapped []metav1.Condition, left int) {
	at := map[string]int{}
	for _, key := range keys {
		d, _ := r.Find(key)
		if d == nil || len(d.Mappings) == 0 && d.Delegate == nil {
			continue
		}

		obs, ok := live.Observed(key)
		if !ok || obs.Trimmed == nil {
			continue
		}
		for _, c := range reported(obs) {
			for _, m := range mappings(d, c) {
				if c.Type != m.SourceType {
					continue
				}
				c.Type = m.DestinationType
				i, twice := at[c.Type]
				switch {
				// A type that was left out stays so, whichever object reports it.
				case twice && i < 0:
				case twice:
					mapped[i] = c
				case len(mapped) == limits.MappedConditions, !conditions.Mapped(c.Type), !conditions.ValidType(c.Type):
					at[c.Type] = -1
					left++
				default:
					at[c.Type] = len(mapped)
					mapped = append(mapped, c)
				}
				break
			}
		}
	}

	return mapped, left
}

// mappingsOf converts the mappings of the API.
func mappingsOf(all []corev1alpha1.ConditionMapping) []objects.ConditionMapping {
	mappings := make([]objects.ConditionMapping, len(all))
	for i, m := range all {
		mappings[i] = objects.ConditionMapping(m)
	}
	return mappings
}

// mappings returns the condition mappings of an object. The agent of an ObjectSetPhase has mapped
// its conditions already.
func mappings(d *objects.Desired, c metav1.Condition) []objects.ConditionMapping {
	if d.Delegate != nil && conditions.Mapped(c.Type) {
		return []objects.ConditionMapping{{SourceType: c.Type, DestinationType: c.Type}}
	}
	return d.Mappings
}

// reported returns the conditions of an object for its present generation; malformed
// ones are skipped.
func reported(obs *objects.Observed) []metav1.Condition {
	var object struct {
		Status struct {
			Conditions []any `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(obs.Trimmed, &object); err != nil {
		return nil // the conditions of that kind have another shape
	}

	var all []metav1.Condition
	for _, item := range object.Status.Conditions {
		c, ok := item.(map[string]any)
		if !ok {
			continue
		}
		typ, _ := c["type"].(string)
		generation, _ := c["observedGeneration"].(float64)
		if typ == "" || generation != 0 && int64(generation) != obs.Generation {
			continue
		}

		status, reason := "", ""
		if c["status"] != nil {
			status = fmt.Sprint(c["status"])
		}
		reason, _ = c["reason"].(string)
		message, _ := c["message"].(string)
		all = append(all, conditions.Foreign(typ, status, reason, message))
	}
	return all
}
