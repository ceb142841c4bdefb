package engine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
)

func TestPropagation(t *testing.T) {
	t.Parallel()
	const background, foreground = metav1.DeletePropagationBackground, metav1.DeletePropagationForeground
	for _, tc := range []struct {
		reason, group, kind string
		custom, finalizers  bool
		want                metav1.DeletionPropagation
	}{
		{reason: "it owns no objects", kind: "ConfigMap", want: background},
		{reason: "its pods end first", group: "apps", kind: "Deployment", want: foreground},
		{reason: "also with another controller's finalizer", group: "apps", kind: "StatefulSet", finalizers: true, want: foreground},
		{reason: "of the core group", kind: "ReplicationController", want: foreground},
		{reason: "its Jobs have pods", group: "batch", kind: "CronJob", want: foreground},
		{reason: "it can own pods", group: "example.com", kind: "Database", custom: true, want: foreground},
		{reason: "its controller knows the order", group: "example.com", kind: "Database", custom: true, finalizers: true, want: background},
		{reason: "of an aggregated API", group: "metrics.example.com", kind: "Sample", want: background},
		{reason: "refused for the engine's own kinds", group: apinames.Default.GroupVersion.Group, kind: "ObjectSetPhase", custom: true, want: background},
	} {
		s := &step{
			Step:   phases.Step{Key: objects.Key{Group: tc.group, Kind: tc.kind, Name: "a"}, Live: &objects.Observed{Finalizers: tc.finalizers}},
			run:    &run{Engine: &Engine{Tracker: tracking.New(apinames.Default)}},
			custom: tc.custom,
		}
		if got := s.propagation(); got != tc.want {
			t.Errorf("%s %s: %s, want %s: %s", tc.group, tc.kind, got, tc.want, tc.reason)
		}
	}
}
