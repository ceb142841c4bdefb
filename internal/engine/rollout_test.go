package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

// Keys are the objects that an owner keeps claimed, also before the status of a new set reports it.
func TestKeysOfARollout(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		change func(*Revision)
		want   int
	}{
		"claimed by no owner": {func(*Revision) {}, 0},
		"claimed":             {func(r *Revision) { r.Restore(phases.Recorded{Claimed: true}) }, 1},
		"claimed at creation": {func(r *Revision) { r.ClaimedAtCreation = true }, 1},
		"claimed at creation, and lost since": {func(r *Revision) {
			r.ClaimedAtCreation = true
			r.LoseClaim()
		}, 0},
		"archived": {func(r *Revision) { r.ClaimedAtCreation, r.History = true, true }, 0},
	} {
		r := New(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "shop"}, UID: "shop"})
		rev := &Revision{}
		rev.Identify("shop-1", "set", "1")
		rev.Phases = []phases.Phase{{Objects: []*objects.Desired{{Key: objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "a"}, Version: "v1"}}}}
		tc.change(rev)
		r.Put(rev)
		require.Equal(t, tc.want, len(r.Keys()), reason)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	reset, busy := errors.New("connection reset"), fmt.Errorf("apply: %w", apierrors.NewTooManyRequests("busy", 7))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "web", errors.New("exceeded quota"))
	for name, tc := range map[string]struct {
		reason   string
		err      error
		attempts int
		want     time.Duration
	}{
		"first":                {"it can pass at once", reset, 1, 100 * time.Millisecond},
		"fourth":               {"the pause doubles", reset, 4, 800 * time.Millisecond},
		"many":                 {"up to half a minute", reset, 1000, 30 * time.Second},
		"refused":              {"a user has to act", forbidden, 1, time.Second},
		"refused many times":   {"up to five minutes", forbidden, 1000, 5 * time.Minute},
		"too many requests":    {"as the API server asks", busy, 1, 7 * time.Second},
		"too many, many times": {"or longer", busy, 1000, 30 * time.Second},
	} {
		require.Equal(t, tc.want, backoff(tc.err, tc.attempts), fmt.Sprintf("%s: %s", name, tc.reason))
	}
}

// A retry forgets failures, and keeps the records of writes.
func TestRetry(t *testing.T) {
	t.Parallel()
	key := objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "web"}
	now := time.Now()
	r := New(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "web"}, UID: "uid"})
	r.applied[key] = &phases.Applied{
		UID: "written", ReadAt: now, Failure: &phases.Failure{Until: now.Add(time.Minute)}, Contention: &phases.Contention{Corrections: 9, Corrected: now},
	}
	r.Retry()
	require.Equal(t, &phases.Applied{UID: "written", ReadAt: time.Unix(0, 0)}, r.applied[key])
}

// changing is a live state with an object that changes at each of the first reads.
type changing struct {
	cluster.LiveState
	changes, reads int
	last           *objects.Observed
}

func (c *changing) State(schema.GroupKind) livestate.KindState {
	return livestate.KindState{Served: true, Synced: true}
}

func (c *changing) Passed(schema.GroupKind, string) bool { return true }

func (c *changing) Observed(objects.Key) (*objects.Observed, bool) {
	if c.reads++; c.reads <= c.changes+1 {
		c.last = &objects.Observed{UID: "a", Watched: true}
	}
	return c.last, true
}

// TestStateIsOfOneMoment: events continue to arrive while a state is made. Changed objects are
// evaluated again, and if they change all the time, the state reports it (invariant 1).
func TestStateIsOfOneMoment(t *testing.T) {
	t.Parallel()
	for changes, want := range map[int]bool{0: false, 1: false, 2: false, 10: true} {
		kind := schema.GroupKind{Kind: "ConfigMap"}
		r := New(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "shop"}, UID: "us"})
		d := &objects.Desired{Key: objects.Key{Kind: kind.Kind, Namespace: "n", Name: "a"}}
		rev := &Revision{
			Revision: phases.Revision{
				UID: "set", Probed: sets.New(kind), Phases: []phases.Phase{{Name: "one", Objects: []*objects.Desired{d}}},
			},
			Probes: &probes.Set{},
		}
		require.NoError(t, rev.Claim())
		r.Put(rev)
		live := &changing{changes: changes}
		s, _ := r.Snapshot(live, nil, time.Now(), func(*phases.State) {})
		require.Equal(t, want, s.Changed, fmt.Sprintf("%d changes: changed", changes))
		if now, _ := live.Observed(d.Key); !want && s.Live[d.Key].Object != now {
			t.Errorf("%d changes: the state has an older record", changes)
		}
	}
}

func TestDataOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		live   map[string]any
		want   map[string]any
	}{
		"ConfigMap": {
			reason: "no other manager adds to the data of one",
			live:   map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "data": map[string]any{"a": "1"}, "immutable": true},
			want:   map[string]any{"data": map[string]any{"a": "1"}},
		},
		"Secret": {
			reason: "nor to one's own",
			live:   map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "MQ=="}, "type": "Opaque"},
			want:   map[string]any{"data": map[string]any{"a": "MQ=="}},
		},
		"claim": {
			reason: "the API server adds fields that cannot be taken away",
			live:   map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": map[string]any{"storageClassName": "standard"}},
			want:   map[string]any{},
		},
		"custom resource": {
			reason: "its schema can have defaults",
			live:   map[string]any{"apiVersion": "shop.example/v1", "kind": "ConfigMap", "data": map[string]any{"a": "1"}},
			want:   map[string]any{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, dataOf(&unstructured.Unstructured{Object: tc.live}), tc.reason)
		})
	}
}

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
		require.Equal(t, tc.want, s.propagation(), fmt.Sprintf("%s %s", tc.group, tc.kind))
	}
}

// brokenKind is a cluster where every object has one controller, and objects of the kind Broken
// cannot be read.
type brokenKind struct {
	cluster.Cluster
	controller metav1.OwnerReference
}

func (brokenKind) Mapping(kind schema.GroupKind, _ string) (*meta.RESTMapping, error) {
	return &meta.RESTMapping{Resource: schema.GroupVersionResource{Resource: kind.Kind}}, nil
}

func (brokenKind) State(schema.GroupKind) livestate.KindState { return livestate.KindState{} }

func (c brokenKind) GetMetadata(_ context.Context, mapping *meta.RESTMapping, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	if mapping.Resource.Resource == "Broken" {
		return nil, apierrors.NewInternalError(errors.New("no conversion"))
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "live", OwnerReferences: []metav1.OwnerReference{c.controller}}}, nil
}

// A kind that cannot be read hides only the controllers of its own objects, which count as unknown,
// not as absent.
func TestRestoreWithAKindThatCannotBeRead(t *testing.T) {
	t.Parallel()
	owner := func(name string) objects.Owner {
		return objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: name}, UID: types.UID(name)}
	}
	fine, broken := objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "a"}, objects.Key{Kind: "Broken", Namespace: "n", Name: "a"}
	var all []Restored
	for _, name := range []string{"one", "two"} {
		rev := &Revision{}
		rev.Phases = []phases.Phase{{Objects: []*objects.Desired{{Key: fine, Version: "v1"}, {Key: broken, Version: "v1"}}}}
		all = append(all, Restored{Rollout: &Rollout{Owner: owner(name), Claims: claims.NewTable(func(objects.Owner) {})}, Revision: rev})
	}
	e := &Engine{Tracker: tracking.New(apinames.Default), Cluster: brokenKind{controller: metav1.OwnerReference{
		APIVersion: apinames.Default.GroupVersion.String(), Kind: "ObjectDeployment", Name: "two", UID: "two", Controller: ptr.To(true),
	}}}
	unread := 0
	controllers, err := e.controllers(t.Context(), all, []objects.Key{fine, broken}, func(error) error { unread++; return nil })
	if by, known := controllers[fine]; err != nil || !known || by.UID != "two" {
		t.Errorf("of readable owners: %v, %v", controllers, err)
	}
	if _, known := controllers[broken]; known || unread != 1 {
		t.Errorf("of unreadable owners: %v, reported %d times", controllers, unread)
	}
	strict := errors.New("not yet")
	if _, err := e.controllers(t.Context(), all, []objects.Key{fine, broken}, func(error) error { return strict }); !errors.Is(err, strict) {
		t.Errorf("goes on: %v", err)
	}
}

// TestSingle decides about the one object of an owner without revisions, and about the objects to
// remove.
func TestSingle(t *testing.T) {
	t.Parallel()
	owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectTemplate", Namespace: "n", Name: "t"}, UID: "uid"}
	key, former := objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "x"}, objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "former"}
	desired, err := NewDesired(apinames.Default, key, "v1", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}})
	require.NoError(t, err)
	yes := true
	by := func(kind, name string) *objects.Observed {
		return &objects.Observed{UID: "o", ResourceVersion: "1", Watched: true, Owners: []objects.Reference{{OwnerReference: metav1.OwnerReference{
			APIVersion: "package-operator.run/v1alpha1", Kind: kind, Name: name, UID: "uid", Controller: &yes,
		}}}}
	}
	mine, theirs := by("ObjectTemplate", "t"), by("ObjectTemplate", "t")
	theirs.Owners = []objects.Reference{{OwnerReference: metav1.OwnerReference{APIVersion: "v1", Kind: "Other", Name: "o", UID: "other", Controller: &yes}}}
	for _, tc := range []struct {
		reason        string
		live, earlier *objects.Observed
		written       bool
		entry, step   phases.Action
		blocked       string
	}{
		{reason: "absent", entry: phases.Create},
		{reason: "its own, not known in this process", live: mine, step: phases.Verify},
		{reason: "of another controller", live: theirs, blocked: "is controlled by Other o: render another name, or delete it there"},
		{reason: "of nothing", live: &objects.Observed{UID: "o", Watched: true}, blocked: "exists already and nothing controls it: delete it, rename it, or render another name"},
		{reason: "its own by the status, and its reference was taken off", live: &objects.Observed{UID: "o", Watched: true, Wrote: true}, written: true, step: phases.Correct},
		{reason: "with a former one", live: theirs, earlier: mine, step: phases.Delete, blocked: "is controlled by"},
		{reason: "with a former one of others", live: theirs, earlier: theirs, blocked: "is controlled by"},
	} {
		r := New(owner)
		r.Put(Single(owner, desired, tc.written))
		live := map[objects.Key]phases.LiveState{key: {Synced: true, Object: tc.live}}
		if tc.earlier != nil {
			r.Put(Removal(owner, []objects.Key{former, key}))
			live[former] = phases.LiveState{Synced: true, Object: tc.earlier}
		}
		state := r.state(nil, time.Time{})
		state.Live = live
		plan := phases.Next(state)
		report := plan.Reports[len(plan.Reports)-1]
		got := phases.None
		if len(plan.Steps) > 0 {
			got = plan.Steps[0].Action
		}
		entry := phases.None
		if plan.Entry != nil {
			entry = plan.Entry.Steps[0].Action
		}
		blocked := ""
		if len(report.Blocking) > 0 {
			blocked = report.Blocking[0].Message
		}
		if got != tc.step || entry != tc.entry || len(plan.Steps) > 1 || blocked[:min(len(blocked), len(tc.blocked))] != tc.blocked || plan.Gate != nil {
			t.Errorf("%s: step %s, entry %s, blocked %q, %d steps, gate %v", tc.reason, got, entry, blocked, len(plan.Steps), plan.Gate)
		}
	}
}
