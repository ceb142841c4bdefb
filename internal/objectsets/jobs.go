package objectsets

import (
	"encoding/hex"
	"maps"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// Recorded reads the record of Jobs that a deployment has on its status. It ignores entries that
// were edited by hand.
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
