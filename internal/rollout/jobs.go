package rollout

import (
	"encoding/hex"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// noteEnd remembers that a Job has finished: its TTL may remove it before any pass
// looks. Every state that a watch or an answer shows comes by here, so that of a
// DELETED event, which is the one before it, is no news.
func (t *Tracker) noteEnd(key objects.Key, live *unstructured.Unstructured, obs *objects.Observed, content objects.Digest) {
	outcome := objects.OutcomeOf(live.Object)
	if outcome == "" {
		return
	}
	ended := objects.Ended{UID: obs.UID, Outcome: outcome, Revision: obs.Revision}
	if obs.Matches {
		ended.Shows = content
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended[key] = ended
}

// Ended returns what was seen of Jobs of an owner that have finished.
func (t *Tracker) Ended(owner objects.OwnerKey) map[objects.Key]objects.Ended {
	t.mu.RLock()
	defer t.mu.RUnlock()
	ended := map[objects.Key]objects.Ended{}
	for key, one := range t.ended {
		if t.tracks[key].follower != nil && t.tracks[key].owner == owner {
			ended[key] = one
		}
	}
	return ended
}

// SettleEnded forgets the ends of Jobs that are recorded, unless something newer was
// seen since.
func (t *Tracker) SettleEnded(noted map[objects.Key]objects.Ended) {
	if len(noted) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, ended := range noted {
		if t.ended[key] == ended {
			delete(t.ended, key)
		}
	}
}

// Recorded reads the record of Jobs that a deployment has on its status. Entries
// that were edited by hand count as absent.
func Recorded(status *corev1alpha1.ObjectDeploymentStatus) map[objects.Key]phases.Run {
	if len(status.Jobs) == 0 {
		return nil
	}
	runs := make(map[objects.Key]phases.Run, len(status.Jobs))
	for _, j := range status.Jobs {
		run := phases.Run{Outcome: objects.Outcome(j.Result), UID: j.UID, Namespace: j.NamespaceUID}
		n, err := hex.Decode(run.Content[:], []byte(j.ContentHash[:min(len(j.ContentHash), hex.EncodedLen(len(run.Content)))]))
		if err != nil || n != len(run.Content) || run.Outcome != objects.Succeeded && run.Outcome != objects.Failed {
			continue
		}
		runs[objects.Key{Group: j.Group, Kind: j.Kind, Namespace: j.Namespace, Name: j.Name}] = run
	}
	return runs
}

// Records is what a status says of Jobs that have finished, in order.
func Records(runs map[objects.Key]phases.Run) []corev1alpha1.JobRecord {
	var records []corev1alpha1.JobRecord
	for _, key := range slices.SortedFunc(maps.Keys(runs), objects.Key.Compare) {
		run := runs[key]
		records = append(records, corev1alpha1.JobRecord{
			Group: key.Group, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name,
			ContentHash: hex.EncodeToString(run.Content[:]), Result: corev1alpha1.JobResult(run.Outcome),
			UID: run.UID, NamespaceUID: run.Namespace,
		})
	}
	return records
}
