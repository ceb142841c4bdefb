package objects_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// TestHeldBy checks that the reason quotes the finalizers and only conditions about the deletion.
func TestHeldBy(t *testing.T) {
	t.Parallel()
	condition := func(typ, status, message string) any {
		return map[string]any{"type": typ, "status": status, "message": message}
	}

	for _, tc := range []struct {
		reason     string
		finalizers []string
		conditions []any
		want       string
	}{
		{"no finalizer holds it", nil, nil, ""},
		{"the garbage collector ends the pods", []string{"a", "foregroundDeletion"}, nil, "held by finalizer a; waits for its pods and other dependents to end"},
		{"finalizers", []string{"a", "b"}, nil, "held by finalizer a, b"},
		{
			"a namespace", nil, []any{
				condition("NamespaceDeletionDiscoveryFailure", "True", "Discovery failed for some groups, 1 failing"),
				condition("NamespaceDeletionContentFailure", "False", "All content successfully deleted"),
				condition("NamespaceContentRemaining", "True", "Some resources are remaining: gauges.example.com has 1 resource instances"),
			}, "NamespaceDeletionDiscoveryFailure: Discovery failed for some groups, 1 failing; NamespaceContentRemaining: Some resources are remaining: gauges.example.com has 1 resource instances",
		},
		{
			"a definition", []string{"customresourcecleanup.apiextensions.k8s.io"}, []any{
				condition("Established", "True", "the initial names have been accepted"), condition("Terminating", "True", "CustomResource deletion is in progress"), "garbage",
			}, "held by finalizer customresourcecleanup.apiextensions.k8s.io; Terminating: CustomResource deletion is in progress",
		},
	} {
		if got := objects.HeldBy(tc.finalizers, tc.conditions); got != tc.want {
			t.Errorf("%s: %q", tc.reason, got)
		}
	}

	long := strings.Repeat("ä", limits.HeldBytes)
	if got := objects.HeldBy([]string{long}, []any{condition("Terminating", "True", long)}); len(got) > limits.HeldBytes+len("…") {
		t.Errorf("%d bytes", len(got))
	}
}

// TestCollectedSince checks that the time is set only for objects that own no pods and that only
// the garbage collector holds.
func TestCollectedSince(t *testing.T) {
	t.Parallel()
	deleted := metav1.Unix(1_700_000_000, 0)
	database, deployment := schema.GroupKind{Group: "example.com", Kind: "Database"}, schema.GroupKind{Group: "apps", Kind: "Deployment"}
	collector := metav1.FinalizerDeleteDependents
	for _, tc := range []struct {
		reason     string
		kind       schema.GroupKind
		deleted    *metav1.Time
		finalizers []string
		want       int64
	}{
		{reason: "not deleted", kind: database, finalizers: []string{collector}},
		{reason: "in the background", kind: database, deleted: &deleted},
		{reason: "in the foreground", kind: database, deleted: &deleted, finalizers: []string{collector}, want: 1_700_000_000},
		{reason: "a controller holds it, too", kind: database, deleted: &deleted, finalizers: []string{"a/b", collector}},
		{reason: "its pods are awaited however long they take", kind: deployment, deleted: &deleted, finalizers: []string{collector}},
	} {
		if got := objects.CollectedSince(tc.kind, tc.deleted, tc.finalizers); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
		}
	}
}
