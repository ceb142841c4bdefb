package objectdeployments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/statuses"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

// An expired Lease can be renewed if no other process took it, and no event reports that: writes
// that were refused meanwhile are tried again.
func TestGoesOnAfterTheLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	got, err := (&reconciliation{}).Result(t.Context(), fmt.Errorf("patch: %w", leadership.ErrNotLeading))
	if err != nil || got.RequeueAfter != limits.LeaseRetry {
		t.Errorf("again after %s, error %v, want %s", got.RequeueAfter, err, limits.LeaseRetry)
	}
}

// TestOutdated: if its owner is changed or deleted, a rollout ends after the
// present phase.
func TestOutdated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*corev1alpha1.ObjectDeployment)
		want   bool
	}{
		"as it was": {change: func(*corev1alpha1.ObjectDeployment) {}},
		"status":    {change: func(d *corev1alpha1.ObjectDeployment) { d.Status.Revision = 2 }},
		"spec":      {change: func(d *corev1alpha1.ObjectDeployment) { d.Generation = 2 }, want: true},
		"another":   {change: func(d *corev1alpha1.ObjectDeployment) { d.UID = "another" }, want: true},
		"gone":      {change: func(d *corev1alpha1.ObjectDeployment) { d.Name = "another" }, want: true},
		"deleted": {want: true, change: func(d *corev1alpha1.ObjectDeployment) {
			d.DeletionTimestamp, d.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{corev1alpha1.CachedFinalizer}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reconciliationOf(nil, nil)
			s.deployment.SetGeneration(1)
			cached := s.deployment.DeepCopyObject().(*corev1alpha1.ObjectDeployment)
			tc.change(cached)
			s.Client = newServer().WithObjects(cached).Build()
			if got, err := s.outdated(t.Context()); got != tc.want || err != nil {
				t.Errorf("%t, %v", got, err)
			}
		})
	}
}

// TestRevisionIsMadeOnce creates a revision again without knowing that it exists: its name shows
// whether it is the same or another one.
func TestRevisionIsMadeOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		// change turns the existing set into another one.
		change func(*corev1alpha1.ObjectSet)
		want   int
	}{
		"the answer was lost":              {"it is the wanted one", func(*corev1alpha1.ObjectSet) {}, 1},
		"another deployment of the name":   {"an earlier deployment made it", func(s *corev1alpha1.ObjectSet) { s.OwnerReferences[0].UID = "former" }, 2},
		"another revision":                 {"the template went back", func(s *corev1alpha1.ObjectSet) { s.Spec.Revision = 7 }, 2},
		"another template of the same sum": {"hashes can collide", func(s *corev1alpha1.ObjectSet) { s.Spec.Phases[0].Name = "other" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer().Build()
			lost := errors.New("the connection broke")
			failing := true
			behind := interceptor.NewClient(server, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if err := c.Create(ctx, obj, opts...); err != nil || !failing {
						return err
					}
					return lost
				},
				// The cache shows no set yet.
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
			})
			s := reconciliationOf(behind, server)
			if err := s.createSet(t.Context(), 1); !errors.Is(err, lost) {
				t.Fatalf("the first attempt: %v", err)
			}
			failing = false
			var sets corev1alpha1.ObjectSetList
			require.NoError(t, server.List(t.Context(), &sets))
			tc.change(&sets.Items[0])
			require.NoError(t, server.Update(t.Context(), &sets.Items[0]))
			require.NoError(t, s.createSet(t.Context(), 1))
			require.NoError(t, server.List(t.Context(), &sets))
			require.Equal(t, tc.want, len(sets.Items), tc.reason)
			made, hash := s.sets[0], s.deploymentStatus().TemplateHash
			name := "shop-" + hash
			if tc.want > 1 {
				name += "-1"
			}
			if made.GetName() != name || made.GetAnnotations()[corev1alpha1.HashAnnotation] != hash {
				t.Errorf("%s: the set is %s with the hash %q, want %s with %q", tc.reason,
					made.GetName(), made.GetAnnotations()[corev1alpha1.HashAnnotation], name, hash)
			}
			require.Equal(t, 1, len(s.sets), fmt.Sprintf("%s: the reconcile knows", tc.reason))
		})
	}
}

// TestClaimOfAnEarlierProcess: a claim by the creation of a set is used when the claims are
// restored at a start. Later the claims are in memory, also for a new session of the target, and a
// mark that a user writes on a set of their own does not claim anything.
func TestClaimOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	held := func(name string) objects.Key { return objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: name} }
	for name, tc := range map[string]struct {
		restored bool
		held     []objects.Key
		want     bool
	}{
		"at a start":                {want: true},
		"later":                     {restored: true},
		"later, some objects held":  {restored: true, held: []objects.Key{held("a")}},
		"later, in another session": {restored: true, held: []objects.Key{held("a"), held("b")}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reconciliationOf(nil, nil)
			s.Target.Cluster, s.restored = liveOf(t, servesThings), tc.restored
			s.deployment.ObjectDeploymentSpec().Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Objects: slices.Concat(
				stored(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`),
				stored(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}`),
			)}}
			require.NoError(t, s.rollout.Claims.Claim(s.rollout.Owner, tc.held))
			set, err := s.newSet(1)
			require.NoError(t, err)
			set.SetUID("set")
			set.GetAnnotations()[corev1alpha1.ClaimedAnnotation] = "true"
			s.sets = []corev1alpha1.GenericObjectSet{set}
			require.NoError(t, s.loadSets(t.Context()))
			require.Equal(t, tc.want, s.revisionOf(set).Claimed())
		})
	}
}

// TestAnnotationsOfASet: a set does not inherit a claim from an annotation of the deployment.
func TestAnnotationsOfASet(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	s.deployment.SetAnnotations(map[string]string{corev1alpha1.ClaimedAnnotation: "true", "example.com/kept": "yes"})
	set, err := s.newSet(1)
	require.NoError(t, err)
	if _, claimed := set.GetAnnotations()[corev1alpha1.ClaimedAnnotation]; claimed || set.GetAnnotations()["example.com/kept"] != "yes" {
		t.Errorf("the set has the annotations %v", set.GetAnnotations())
	}
}

// A set without a deployment looks for its predecessors among all sets of its namespace. It reads
// them from the cache without copies: a copy of each set, in each reconcile of each set, grows with
// the square of their number.
func TestRelationsAreReadWithoutCopies(t *testing.T) {
	t.Parallel()
	me, before, other := setOf("shop-2", false), setOf("shop-1", false), setOf("store-1", false)
	for _, set := range []*corev1alpha1.ObjectSet{me, before, other} {
		set.OwnerReferences = nil
	}
	me.Spec.Previous = []corev1alpha1.PreviousRevisionReference{{Name: "shop-1"}}
	server := newServer().WithObjects(me, before, other).Build()
	listed := 0
	c := interceptor.NewClient(server, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			listed++
			if o := (&client.ListOptions{}).ApplyOptions(opts); !ptr.Deref(o.UnsafeDisableDeepCopy, false) || o.Namespace != "shop" {
				t.Errorf("listed with %+v", o)
			}
			return c.List(ctx, list, opts...)
		},
	})
	s := reconciliationOf(c, server)
	loneSet(s, me)
	require.NoError(t, s.relate(t.Context()))
	if listed != 1 || !slices.Equal(s.rollout.Previous, []types.UID{before.UID}) {
		t.Errorf("listed %d times, follows %v", listed, s.rollout.Previous)
	}
}

// The remaining objects of a set are spared for a later set that names it, unless that one leaves,
// too.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		change func(later *corev1alpha1.ObjectSet)
		want   bool
	}{
		"a later set":    {func(*corev1alpha1.ObjectSet) {}, true},
		"of another one": {func(later *corev1alpha1.ObjectSet) { later.Spec.Previous[0].Name = "store-1" }, false},
		"archived as well": {func(later *corev1alpha1.ObjectSet) {
			later.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
		}, false},
		"deleted as well": {func(later *corev1alpha1.ObjectSet) {
			later.Finalizers, later.DeletionTimestamp = []string{"a/b"}, ptr.To(metav1.Now())
		}, false},
	} {
		me, later := setOf("shop-1", false), setOf("shop-2", false)
		me.OwnerReferences, later.OwnerReferences = nil, nil
		later.Spec.Previous = []corev1alpha1.PreviousRevisionReference{{Name: "shop-1"}}
		tc.change(later)
		server := newServer().WithObjects(me, later).Build()
		s := reconciliationOf(server, server)
		loneSet(s, me)
		if err := s.relate(t.Context()); err != nil || s.rollout.Controllers.Replaced != tc.want {
			t.Errorf("%s: %t, %v", reason, s.rollout.Controllers.Replaced, err)
		}
	}
}

// phasesRead calls a function when an ObjectSetPhase is read, and has none.
type phasesRead struct {
	Phases
	read func()
}

func (p phasesRead) Read(context.Context, objects.OwnerKey) (Phase, error) {
	p.read()
	return nil, nil
}

// The owners of both controllers are underway, and each queue counts its own.
func TestUnderwayCountsPhases(t *testing.T) {
	t.Parallel()
	r := reconciliationOf(nil, nil).Reconciler
	r.restored = true
	start := func(q *queueing.Queue[objects.OwnerKey], name string) workqueue.TypedRateLimitingInterface[objects.OwnerKey] {
		settings := Settings(name, 1)
		limiter := workqueue.DefaultTypedItemBasedRateLimiter[objects.OwnerKey]()
		queue := q.Fair(settings.Share, settings.NamespaceOf)("", limiter)
		t.Cleanup(queue.ShutDown)
		require.NoError(t, q.Start(t.Context(), queue))
		return queue
	}
	start(&r.Deployments, "deployments")
	ofPhases := start(&r.Queues.Phases, "phases")
	phase := objects.OwnerKey{Kind: "ObjectSetPhase", Namespace: "shop", Name: "a"}
	r.Deployments.Enqueue(objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "a"})
	r.Queues.Phases.Enqueue(phase)
	r.Queues.Phases.Enqueue(objects.OwnerKey{Kind: "ObjectSetPhase", Namespace: "other", Name: "a"})
	check := func(when string) {
		t.Helper()
		if all, own := r.Underway("shop"); all != 3 || own != 2 {
			t.Errorf("%s: %d are underway, %d of the namespace", when, all, own)
		}
	}
	check("all wait")
	read := false
	r.Phases = phasesRead{read: func() {
		read = true
		check("one is reconciled")
		if got, _ := r.Queues.Phases.Depth(""); got != 2 {
			t.Errorf("the queue of phases counts %d", got)
		}
	}}
	if key, _ := ofPhases.Get(); key != phase {
		t.Fatalf("the first is %s", key)
	}
	if _, err := r.Reconcile(t.Context(), phase); err != nil || !read {
		t.Errorf("read: %t, %v", read, err)
	}
}

// An event over which a handler panics ends no process, and delays no other.
func TestEventsThatPanic(t *testing.T) {
	t.Parallel()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[objects.OwnerKey]())
	defer queue.ShutDown()
	h := enqueues(func(_ context.Context, obj client.Object) []objects.OwnerKey {
		if obj.GetName() == "bad" {
			panic("hunter2")
		}
		return []objects.OwnerKey{{Name: obj.GetName()}}
	})
	for _, name := range []string{"bad", "good"} {
		set := &corev1alpha1.ObjectSet{}
		set.Name = name
		h.Create(t.Context(), event.CreateEvent{Object: set}, queue)
	}
	if key, _ := queue.Get(); key.Name != "good" || queue.Len() > 0 {
		t.Errorf("enqueued are %v and %d more", key, queue.Len())
	}
	if !isNews(func() bool { panic("hunter2") }) {
		t.Error("an event over which a predicate panics is left out")
	}
}

// TestAwaitsVerdict: neither a watch that lags nor slow probes make an available owner
// unavailable after a correction of drift or a restart.
func TestAwaitsVerdict(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &reconciliation{Reconciler: &Reconciler{Home: Home{Now: func() time.Time { return now }}}, state: &state{rollout: engine.New(objects.Owner{Names: apinames.Default, UID: ""})}}
	unseen, failing := phases.Blocker{Kind: phases.BlockUnseen}, phases.Blocker{Kind: phases.BlockProbe}
	for _, step := range []struct {
		reason   string
		blocking []phases.Blocker
		passes   time.Duration
		want     bool
		after    time.Duration
	}{
		{"no object blocks it", nil, 0, false, 0},
		{"a probe fails", []phases.Blocker{failing}, 0, false, 0},
		{"the watch is behind", []phases.Blocker{failing, unseen}, 0, true, limits.StatusInterval},
		{"it continues", []phases.Blocker{unseen}, limits.StatusInterval - time.Millisecond, true, time.Millisecond},
		{"it lasts", []phases.Blocker{unseen}, time.Millisecond, false, 0},
		{"it has come", nil, time.Minute, false, 0},
		{"it is behind once more", []phases.Blocker{unseen}, 0, true, limits.StatusInterval},
		{"it has come", nil, time.Minute, false, 0},
		{"there is no time for probes", []phases.Blocker{unseen}, 0, true, probeBudgetGrace},
		{"that goes on", []phases.Blocker{unseen}, probeBudgetGrace - time.Millisecond, true, time.Millisecond},
		{"that lasts", []phases.Blocker{unseen}, time.Millisecond, false, 0},
	} {
		if step.want && step.after == probeBudgetGrace {
			s.rollout.Start(s.Now, 0)
		}
		now, s.After = now.Add(step.passes), 0
		s.rollout.Plan().Reports = []phases.Report{{}, {Blocking: step.blocking}}
		if got := s.awaitsVerdict(); got != step.want || s.After != step.after {
			t.Errorf("%s: awaitsVerdict = %t, again after %s; want %t, %s", step.reason, got, s.After, step.want, step.after)
		}
	}
}

// A change of the timeline alone is remembered, and written with the next status that differs
// otherwise. A restart continues from the written one.
func TestTimelineAloneIsNotWritten(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var counted []engine.Event
	target := &Target{Engine: &engine.Engine{Count: func(e engine.Event) { counted = append(counted, e) }}}
	newReconciliation := func() *reconciliation {
		return &reconciliation{Reconciler: &Reconciler{Home: Home{Now: func() time.Time { return now }}}, state: &state{Target: target, records: map[types.UID]*record{}}}
	}
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
	set.Status.Phases = []corev1alpha1.PhaseStatus{{Name: "one", State: corev1alpha1.PhaseStateProbing}}
	s := newReconciliation()
	status := set.Status.DeepCopy()
	s.followPhases(set, status)
	if len(status.Timeline) != 1 || !statuses.Same(&set.Status, status) {
		t.Fatalf("the timeline %v is a reason for a write", status.Timeline)
	}
	now = now.Add(time.Minute)
	status = set.Status.DeepCopy()
	status.Phases[0].State = corev1alpha1.PhaseStateReady
	s.followPhases(set, status)
	if statuses.Same(&set.Status, status) {
		t.Error("another state of a phase is ignored")
	}
	if times := status.Timeline[0]; times.ReadyAt.Sub(times.AppliedAt.Time) != time.Minute {
		t.Errorf("what was not written is forgotten: %v", times)
	}
	set.Status = *status
	now = now.Add(time.Hour)
	after := set.Status.DeepCopy()
	newReconciliation().followPhases(set, after)
	if got := after.Timeline[0]; !got.ReadyAt.Equal(status.Timeline[0].ReadyAt) {
		t.Errorf("after a restart the phase was ready at %v, before at %v", got.ReadyAt, status.Timeline[0].ReadyAt)
	}
	if want := []engine.Event{{Kind: engine.PhaseReady, Took: time.Minute}}; !slices.Equal(counted, want) {
		t.Errorf("counted %v, want %v", counted, want)
	}
}

// lists is a cluster in which all kinds are served and perhaps pending.
type lists struct {
	cluster.Cluster
	pending bool
	used    []string
}

func (l *lists) Use(owner string, _ []schema.GroupKind) { l.used = append(l.used, owner) }

func (l *lists) State(schema.GroupKind) livestate.KindState {
	return livestate.KindState{Served: true, Pending: l.pending}
}

// TestAwaitLists: after a start, an owner is reconciled once its objects were listed, unless its
// spec was changed meanwhile. Later kinds do not hold it up.
func TestAwaitLists(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	rev := engine.NewRevision()
	rev.Identify("shop-1", "set", "1")
	rev.Phases = []phases.Phase{{Name: "one", Objects: []*objects.Desired{{Key: objects.Key{Kind: "ConfigMap", Name: "c"}}}}}
	s.rollout.Put(rev)
	here := &lists{pending: true}
	s.Target.Cluster = here
	if err := s.awaitLists(t.Context()); !errors.Is(err, queueing.ErrEnd) {
		t.Errorf("during the first list: %v", err)
	}
	// The end of the list enqueues only owners that are known to use the kind.
	require.Equal(t, []string{s.rollout.Owner.String()}, here.used)
	woken := 0
	s.Target.Tracker.Wake = func(objects.OwnerKey) { woken++ }
	s.Target.Tracker.KindChanged(schema.GroupKind{Kind: "ConfigMap"})
	require.Equal(t, 1, woken)
	here.pending = false
	require.NoError(t, s.awaitLists(t.Context()))
	here.pending = true
	require.NoError(t, s.awaitLists(t.Context()))

	s.listed = false
	s.deployment.SetGeneration(2)
	require.NoError(t, s.awaitLists(t.Context()))
}
