package tracking

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

// endedOf returns the observed end of a Job, or nil.
func endedOf(tracker *Tracker, owner objects.OwnerKey, key objects.Key) *objects.Finished {
	if ended, seen := tracker.FinishedOf(owner)[key]; seen {
		return &ended
	}
	return nil
}

// The end of a Job outlives the Job, until it is recorded.
func TestTrackerRecordsFinished(t *testing.T) {
	t.Parallel()
	key := objects.Key{Group: "batch", Kind: "Job", Namespace: "n", Name: "migrate"}
	owner := objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "app"}
	desired := &objects.Desired{Key: key, Version: "v1", Content: objects.Digest{7}, Raw: []byte(
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate"},"spec":{"parallelism":1}}`)}
	metadata := objects.ManagedMetadata{Revision: 3, Owner: objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "app"}, UID: "owner"}}
	job := func(controller string, parallelism int64, conditions ...string) *unstructured.Unstructured {
		template, err := desired.Object(metadata)
		require.NoError(t, err)
		u := &unstructured.Unstructured{Object: template}
		u.SetUID("job")
		u.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "app", UID: "owner", Controller: ptr.To(true),
		}})
		if controller != "" {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: controller, UID: "other", Controller: ptr.To(true)}})
		}
		var all []any
		for _, typ := range conditions {
			all = append(all, map[string]any{"type": typ, "status": "True"})
		}
		u.Object["status"] = map[string]any{"conditions": all}
		u.Object["spec"] = map[string]any{"parallelism": parallelism}
		return u
	}
	tracker := New(apinames.Default)
	tracker.Wake = func(objects.OwnerKey) {}
	tracker.Own(objects.Owner{Names: apinames.Default, OwnerKey: owner}, "owner")
	tracker.Track(owner, desired, metadata, objects.Digest{9})

	tracker.Observe(key, job("", 1))
	tracker.Observe(key, job("nightly", 1, "Complete"))
	if got := endedOf(tracker, owner, key); got != nil {
		t.Fatalf("a Job that runs, or is another owner's, has not ended: %+v", got)
	}
	tracker.Observe(key, job("", 2, "Complete"))
	if got := endedOf(tracker, owner, key); got == nil || !got.Shows.IsZero() {
		t.Errorf("what it ran with is not known by values that differ: %+v", got)
	}
	tracker.Observe(key, job("", 1, "Failed"))
	tracker.Changed(key, nil) // it was deleted
	want := &objects.Finished{UID: "job", Outcome: objects.Failed, Revision: 3, Shows: objects.Digest{7}}
	require.Equal(t, want, endedOf(tracker, owner, key), "its recorded end")
	newer := *want
	newer.Outcome = objects.Succeeded
	tracker.ForgetFinished(map[objects.Key]objects.Finished{key: newer})
	if endedOf(tracker, owner, key) == nil {
		t.Error("another end was recorded, and this one is forgotten")
	}
	tracker.ForgetFinished(map[objects.Key]objects.Finished{key: *want})
	if got := endedOf(tracker, owner, key); got != nil {
		t.Errorf("it is recorded, and remembered all the same: %+v", got)
	}
	tracker.Observe(key, job("", 1, "Complete"))
	tracker.Untrack(owner, key)
	if got := endedOf(tracker, owner, key); got != nil {
		t.Errorf("no owner follows the Job, and its end is remembered: %+v", got)
	}
}
