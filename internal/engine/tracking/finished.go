package tracking

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/objects"
)

// recordFinished records that a Job has finished, because its TTL can remove it before the next
// reconcile. It sees every state from a watch or a response, so the state in a DELETED event is
// already recorded: the event before it has the same one.
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

// FinishedOf returns the Jobs of an owner that were seen to have finished.
func (t *Tracker) FinishedOf(owner objects.OwnerKey) map[objects.Key]objects.Finished {
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

// ForgetFinished forgets the ends of Jobs that a status records, unless a newer end was seen since.
func (t *Tracker) ForgetFinished(recorded map[objects.Key]objects.Finished) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, ended := range recorded {
		if t.finished[key] == ended {
			delete(t.finished, key)
		}
	}
}
