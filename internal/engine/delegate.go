package engine

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/drift"
)

// Class returns the class of the phase that an object delegates to an agent; it is empty for other
// objects.
func (r *Revision) Class(key objects.Key) string {
	d, _ := r.Find(key)
	return d.Class()
}

// relayPause pauses and resumes ObjectSetPhases along with their revision. The field is omitted if
// it is not needed, because Package Operator's ObjectSetPhases do not have it.
func (r *Revision) relayPause(live cluster.LiveState) {
	for i := range r.Phases {
		for j, d := range r.Phases[i].Objects {
			if d.Delegate == nil {
				continue
			}
			var paused *bool
			if r.Paused() || pausedField(live, d.Key) {
				paused = ptr.To(r.Paused())
			}
			if ptr.Equal(paused, d.Delegate.Paused) {
				continue
			}
			if other, err := withPaused(d, paused); err == nil {
				r.Phases[i].Objects[j] = other
			}
		}
	}
}

// pausedField reports whether an ObjectSetPhase has the field.
func pausedField(live cluster.LiveState, key objects.Key) bool {
	obs, shown := live.Observed(key)
	if !shown {
		return false
	}
	var phase struct {
		Spec struct {
			Paused *bool `json:"paused"`
		} `json:"spec"`
	}
	return json.Unmarshal(obs.Trimmed, &phase) == nil && phase.Spec.Paused != nil
}

// withPaused returns a copy of an ObjectSetPhase with another spec.paused.
func withPaused(d *objects.Desired, paused *bool) (*objects.Desired, error) {
	content := map[string]any{}
	if err := utiljson.Unmarshal(d.Raw, &content); err != nil {
		return nil, err
	}

	if paused == nil {
		unstructured.RemoveNestedField(content, "spec", "paused")
	} else if err := unstructured.SetNestedField(content, *paused, "spec", "paused"); err != nil {
		return nil, err
	}

	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}

	other, delegate := *d, *d.Delegate
	delegate.Paused = paused
	other.Delegate = &delegate
	return &other, SetContent(&other, raw)
}

// Delegates returns the ObjectSetPhases of a revision, in the order of its phases.
func (r *Revision) Delegates() []*objects.Desired {
	var all []*objects.Desired
	for _, d := range r.Objects() {
		if d.Delegate != nil {
			all = append(all, d)
		}
	}
	return all
}

// SetContent sets the content of an ObjectSetPhase, which is JSON.
func SetContent(d *objects.Desired, raw []byte) error {
	content := map[string]any{}
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return err
	}
	d.Raw, d.Content = raw, drift.ContentDigest(d.Delegate.Set.Names, content)
	return nil
}
