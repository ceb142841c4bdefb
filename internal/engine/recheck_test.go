package engine_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/memory"
	"lockstep.run/lockstep/test/require"
)

// If a revision collides with an object from outside the engine, it is checked again after a while.
// If it collides with the claim of another owner, it is not: the release of the claim enqueues it.
func TestRefusedRevisionIsCheckedAgain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	server := memory.NewServer(apinames.Default, func() time.Time { return now }, memory.Kind{GroupVersionKind: configMaps}, memory.Kind{GroupVersionKind: deployments})
	tracker, here := tracking.New(apinames.Default), server.Connect()
	here.Observe, here.Changed, here.KindChanged = tracker.Observe, tracker.Changed, tracker.KindChanged
	here.Send = func(_ context.Context, _ memory.Request, do func() error) error { return do() }
	tracker.Wake = func(objects.OwnerKey) {}
	e := &engine.Engine{Cluster: here, Tracker: tracker, Pool: engine.NewPool(1, 1)}
	settings := desired(configMaps, "settings")
	settings.NeverAdopted = false
	taken := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "shop"},
	}}
	taken.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n", Controller: ptr.To(true)}})
	if _, err := server.Create(settings.Key, taken, "kubectl"); err != nil {
		t.Fatal(err)
	}
	rev := engine.NewRevision()
	rev.Identify("shop", "shop-1", "")
	rev.Metadata = objects.ManagedMetadata{Owner: shop}
	rev.Phases = []phases.Phase{{Name: "a", Objects: []*objects.Desired{settings}}}
	rev.SetProbes(&probes.Set{})
	owner := engine.New(shop)
	owner.Claims = claims.NewTable(func(objects.Owner) {})
	owner.Put(rev)
	step := func() engine.Outcome {
		t.Helper()
		defer owner.Start(func() time.Time { return now }, time.Second)()
		out, err := e.Step(t.Context(), owner, engine.Want{Current: rev.UID, Store: notes{}})
		if err != nil || !rev.Refused() {
			t.Fatalf("refused: %v, error: %v", rev.Refused(), err)
		}
		return out
	}
	if out := step(); !out.RequeueAt.After(now) {
		t.Errorf("an object from outside is looked at again at %v, now it is %v", out.RequeueAt, now)
	}
	other := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectSet", Namespace: "shop", Name: "other"}, UID: "other"}
	require.NoError(t, owner.Claims.Claim(other, []objects.Key{settings.Key}))
	now = now.Add(time.Minute)
	if out := step(); !out.RequeueAt.IsZero() {
		t.Errorf("the claim of another owner is awaited until %v, now it is %v", out.RequeueAt, now)
	}
}
