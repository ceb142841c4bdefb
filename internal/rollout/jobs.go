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

// recordFinished records that a Job has finished: its TTL may remove it before the next
// reconcile. Every state that a watch or a response shows comes by here, so that of a
// DELETED event, which is the one before it, is recorded already.
func (t *Tracker) recordFinished(key objects.Key, live *unstructured.Unstructured, obs *objects.Observed, content objects.Digest) {
	outcome := objects.OutcomeOf(live.Object)
	if outcome == "" {
		return
	}
	ended := objects.Finished{UID: obs.UID, Outcome: outcome, Revision: obs.Revision}
	if obs.Matches {
		ended.Shows = content
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished[key] = ended
}

// Finished returns the Jobs of an owner that were seen to have finished.
func (t *Tracker) Finished(owner objects.OwnerKey) map[objects.Key]objects.Finished {
	t.mu.RLock()
	defer t.mu.RUnlock()
	finished := map[objects.Key]objects.Finished{}
	for key, ended := range t.finished {
		if _, ok := t.tracks.of(owner, key); ok {
			finished[key] = ended
		}
	}
	return finished
}

// ForgetFinished forgets the ends of Jobs that a status records, unless a newer one was
// seen since.
func (t *Tracker) ForgetFinished(recorded map[objects.Key]objects.Finished) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, ended := range recorded {
		if t.finished[key] == ended {
			delete(t.finished, key)
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

// Records returns the record of Jobs for a status, in order.
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
