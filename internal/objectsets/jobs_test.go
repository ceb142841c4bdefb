package objectsets_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

func TestRecordsOfJobs(t *testing.T) {
	t.Parallel()
	a, b := objects.Key{Group: "batch", Kind: "Job", Namespace: "n", Name: "a"}, objects.Key{Group: "batch", Kind: "Job", Namespace: "n", Name: "b"}
	runs := map[objects.Key]phases.Run{
		b: {Content: objects.Digest{1, 2}, Outcome: objects.Failed}, a: {Content: objects.Digest{3}, Outcome: objects.Succeeded},
	}
	records := objectsets.Records(runs)
	want := []corev1alpha1.JobRecord{
		{Group: "batch", Kind: "Job", Namespace: "n", Name: "a", ContentHash: "03" + strings.Repeat("0", 30), Result: "Succeeded"},
		{Group: "batch", Kind: "Job", Namespace: "n", Name: "b", ContentHash: "0102" + strings.Repeat("0", 28), Result: "Failed"},
	}
	if diff := cmp.Diff(want, records); diff != "" {
		t.Fatalf("the Jobs on the status:\n%s", diff)
	}
	byHand := []corev1alpha1.JobRecord{
		{Kind: "Job", Name: "short", ContentHash: "03", Result: "Succeeded"},
		{Kind: "Job", Name: "no hash", ContentHash: strings.Repeat("z", 32), Result: "Succeeded"},
		{Kind: "Job", Name: "no result", ContentHash: strings.Repeat("0", 32), Result: "Perhaps"},
	}
	got := objectsets.Recorded(&corev1alpha1.ObjectDeploymentStatus{Jobs: append(byHand, records...)})
	require.Equal(t, runs, got, "the Jobs that are read back")
}
