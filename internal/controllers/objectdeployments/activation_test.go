package objectdeployments

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/activation"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/revisions"
	"lockstep.run/lockstep/test/require"
)

// TestActivationOfHistory: a set in history takes over only with all of its content. One write of
// its number does that, and then its rollout starts again.
func TestActivationOfHistory(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(set *corev1alpha1.ObjectSet, dep *corev1alpha1.ObjectDeployment)
		want   string
	}{
		"complete": {want: corev1alpha1.ReasonActivated, change: func(*corev1alpha1.ObjectSet, *corev1alpha1.ObjectDeployment) {}},
		"slices are missing": {want: corev1alpha1.ReasonSlicesMissing, change: func(set *corev1alpha1.ObjectSet, _ *corev1alpha1.ObjectDeployment) {
			set.Spec.Phases[0].Slices = []string{"gone"}
		}},
		"values are gone": {want: corev1alpha1.ReasonValuesNotKept, change: func(set *corev1alpha1.ObjectSet, _ *corev1alpha1.ObjectDeployment) {
			set.Spec.Phases[0].SecretSlices = []string{"gone"}
		}},
		"values that the template names are gone": {want: corev1alpha1.ReasonValuesNotKept, change: func(set *corev1alpha1.ObjectSet, dep *corev1alpha1.ObjectDeployment) {
			set.Spec.Phases[0].SecretSlices = []string{"gone"}
			dep.Spec.Template.Spec.Phases[0].SecretSlices = []string{"gone"}
		}},
		"rejected": {want: corev1alpha1.ReasonRejected, change: func(set *corev1alpha1.ObjectSet, dep *corev1alpha1.ObjectDeployment) {
			set.Annotations = map[string]string{corev1alpha1.HashAnnotation: "h", corev1alpha1.PackageDigestAnnotation: "sha256:1"}
			dep.Status.Rejected = []corev1alpha1.RejectedContent{{TemplateHash: "h", Digest: "sha256:1"}}
		}},
		"rejected before a retry": {want: corev1alpha1.ReasonActivated, change: func(set *corev1alpha1.ObjectSet, dep *corev1alpha1.ObjectDeployment) {
			set.Annotations = map[string]string{corev1alpha1.HashAnnotation: "h"}
			dep.Annotations = map[string]string{corev1alpha1.RetryAnnotation: "1"}
			dep.Status.Rejected = []corev1alpha1.RejectedContent{{TemplateHash: "h"}}
		}},
		"another digest was rejected": {want: corev1alpha1.ReasonActivated, change: func(set *corev1alpha1.ObjectSet, dep *corev1alpha1.ObjectDeployment) {
			set.Annotations = map[string]string{corev1alpha1.HashAnnotation: "h", corev1alpha1.PackageDigestAnnotation: "sha256:2"}
			dep.Status.Rejected = []corev1alpha1.RejectedContent{{TemplateHash: "h", Digest: "sha256:1"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, current := setOf("shop-1", true), setOf("shop-2", false)
			old.Spec.LifecycleState, old.Spec.Revision, old.Status.Revision = corev1alpha1.ObjectSetLifecycleStateActive, 1, 1
			conditions.Set(&old.Status.Conditions, 0, corev1alpha1.ConditionSucceeded, true, corev1alpha1.ReasonRolloutSuccess, "")
			current.Spec.LifecycleState, current.Spec.Revision = corev1alpha1.ObjectSetLifecycleStateActive, 2
			s := reconciliationOf(nil, nil)
			dep := s.deployment.(*corev1alpha1.ObjectDeployment)
			dep.Spec.RevisionActivationPolicy = corev1alpha1.RevisionActivationManual
			tc.change(old, dep)
			current.Spec.ObjectSetTemplateSpec = *dep.Spec.Template.Spec.DeepCopy() // the one that is wanted
			server := newServer().WithStatusSubresource(old).WithObjects(old, current).Build()
			s.Client, s.Reader = server, server
			require.NoError(t, s.listSets(t.Context()))
			for again := true; again; {
				var err error
				if again, err = s.syncSets(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			got := &corev1alpha1.ObjectSet{}
			require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(old), got))
			c := meta.FindStatusCondition(got.Status.Conditions, corev1alpha1.ConditionAwaitingActivation)
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != tc.want {
				t.Fatalf("AwaitingActivation is %+v, want %s", c, tc.want)
			}
			activated := tc.want == corev1alpha1.ReasonActivated
			archived, succeeded := meta.IsStatusConditionTrue(got.Status.Conditions, corev1alpha1.ConditionArchived), meta.IsStatusConditionTrue(got.Status.Conditions, corev1alpha1.ConditionSucceeded)
			if number := map[bool]int64{true: 3, false: 1}[activated]; got.Spec.Revision != number || got.Status.Revision != number || archived == activated || succeeded == activated {
				t.Errorf("revision %d is %s with %+v", got.Spec.Revision, got.Spec.LifecycleState, got.Status)
			}
			if state, err := s.revisionState(); err != nil || activated != (s.sets[revisions.InCharge(state)].GetName() == "shop-1") {
				t.Errorf("%s is in charge, %v", s.sets[revisions.InCharge(state)].GetName(), err)
			}
		})
	}
}

// TestRenewedRevisionStays: a revision that has objects and gets a new number is neither superseded
// nor retired before a newer one has succeeded, although it has not written anything by its new
// number yet. Its claim stays, so that it continues to maintain its first phase.
func TestRenewedRevisionStays(t *testing.T) {
	t.Parallel()
	for _, policy := range []corev1alpha1.RevisionActivationPolicy{corev1alpha1.RevisionActivationAutomatic, corev1alpha1.RevisionActivationManual} {
		s := reconciliationOf(nil, nil)
		s.Target.Cluster = unstarted(t, "http://unused", func(schema.GroupKind) {})
		dep := s.deployment.(*corev1alpha1.ObjectDeployment)
		dep.Spec.RevisionActivationPolicy = policy
		good, failing, newest := setOf("shop-1", false), setOf("shop-2", false), setOf("shop-3", false)
		for i, set := range []*corev1alpha1.ObjectSet{good, failing, newest} {
			set.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateActive
			set.Spec.Revision, set.Status.Revision = int64(i+1), int64(i+1)
			set.Annotations = map[string]string{corev1alpha1.AwaitingActivationAnnotation: "true"}
		}
		conditions.Set(&good.Status.Conditions, 0, corev1alpha1.ConditionClaimed, true, corev1alpha1.ReasonClaimed, "")
		conditions.Set(&good.Status.Conditions, 0, corev1alpha1.ConditionSucceeded, true, corev1alpha1.ReasonRolloutSuccess, "")
		good.Spec.Phases[0].Objects = []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"only"}}`)}}}
		good.Status.Phases = []corev1alpha1.PhaseStatus{{Name: "one", State: corev1alpha1.PhaseStateReady, Total: 1, Ready: 1}}
		good.Spec.Revision = 4 // a rollback, an activation, or a user by hand
		newest.Spec.Revision, newest.Status.Revision = 5, 5
		server := newServer().WithStatusSubresource(good).WithObjects(good, failing, newest).Build()
		s.Client, s.Reader = server, server
		require.NoError(t, s.listSets(t.Context()))
		s.setOfUID(newest.UID).ObjectSetSpec().ObjectSetTemplateSpec = *dep.Spec.Template.Spec.DeepCopy()
		pass := func() {
			t.Helper()
			require.NoError(t, s.loadSets(t.Context()))
		}
		pass()
		require.NoError(t, s.renew(t.Context(), s.setOfUID(good.UID)))
		for range 2 { // and after a restart
			pass()
			renewed := s.setOfUID(good.UID)
			rev := s.revisionOf(renewed)
			if rev.Number != 4 || !rev.Claimed() || rev.Succeeded() || rev.Opened() != 1 {
				t.Errorf("%s: number %d, claimed %t, succeeded %t, and %d phases are open", policy, rev.Number, rev.Claimed(), rev.Succeeded(), rev.Opened())
			}
			if objectsets.Waits(renewed) || objectsets.Unwritten(renewed) {
				t.Errorf("%s: it is treated as a revision without writes", policy)
			}
			if status := s.setStatus(renewed, rev); !status.Phases[0].State.Opened() {
				t.Errorf("%s: the next status has this for its phase: %s", policy, status.Phases[0].State)
			}
			state, err := s.revisionState()
			require.NoError(t, err)
			state.Torn = true
			at := slices.Index(s.sets, renewed)
			if d := revisions.Decide(state); slices.Contains(d.Archive, at) || slices.Contains(d.Retire, at) {
				t.Errorf("%s: it is archived: %+v", policy, d)
			}
			s.Target.Drop(s.rollout, good.UID)
		}
	}
}

// TestActivatedTwice: a revision that started over opens its phases again by its status, even if it
// has to start over once more before this process has seen the first time (invariant 1).
func TestActivatedTwice(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	s.Target.Cluster = unstarted(t, "http://unused", func(schema.GroupKind) {})
	set := setOf("shop-1", false)
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one"}, {Name: "two"}}
	conditions.Set(&set.Status.Conditions, 0, corev1alpha1.ConditionClaimed, true, corev1alpha1.ReasonClaimed, "")
	for _, tc := range []struct {
		spec, status int64 // the numbers
		states       [2]corev1alpha1.PhaseState
		started      int
	}{
		{2, 2, [2]corev1alpha1.PhaseState{corev1alpha1.PhaseStateReady, corev1alpha1.PhaseStateReady}, 2},
		{3, 2, [2]corev1alpha1.PhaseState{corev1alpha1.PhaseStateReady, corev1alpha1.PhaseStateReady}, 2},
		{4, 3, [2]corev1alpha1.PhaseState{corev1alpha1.PhaseStateApplying, corev1alpha1.PhaseStateWaiting}, 1},
		{4, 4, [2]corev1alpha1.PhaseState{corev1alpha1.PhaseStateApplying, corev1alpha1.PhaseStateWaiting}, 1},
	} {
		set.Spec.Revision, set.Status.Revision, set.Status.Phases = tc.spec, tc.status, nil
		for i, state := range tc.states {
			set.Status.Phases = append(set.Status.Phases, corev1alpha1.PhaseStatus{Name: set.Spec.Phases[i].Name, State: state})
		}
		require.NoError(t, s.loadOne(t.Context(), set))
		if rev := s.revisionOf(set); rev.Number != tc.status || rev.Started() != tc.started {
			t.Errorf("number %d, whose status is of %d: loaded as %d with %d phases, want %d", tc.spec, tc.status, rev.Number, rev.Started(), tc.started)
		}
	}
}

// TestAdoptCommand: a Package that was installed as a dependency has to be made the user's own
// before it releases an object.
func TestAdoptCommand(t *testing.T) {
	t.Parallel()
	generated := map[string]string{corev1alpha1.GeneratedLabel: "true"}
	c := newServer().WithObjects(
		&corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Labels: generated}},
		&corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}},
		&corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "db", Labels: generated}},
	).Build()
	s := reconciliationOf(c, c)
	require.NoError(t, s.recall(t.Context()))
	for owner, want := range map[objects.OwnerKey]string{
		{Kind: "ObjectDeployment", Namespace: "shop", Name: "db"}:  "kubectl annotate package/db --namespace shop package-operator.run/adopt=true",
		{Kind: "ClusterObjectDeployment", Name: "db"}:              "kubectl annotate clusterpackage/db package-operator.run/adopt=true",
		{Kind: "ObjectDeployment", Namespace: "shop", Name: "web"}: "",
		{Kind: "ObjectDeployment", Namespace: "shop", Name: "own"}: "",
		{Kind: "ObjectSet", Namespace: "shop", Name: "db"}:         "",
	} {
		require.Equal(t, want, s.rollout.Adopt(t.Context(), owner), owner)
	}
}

// TestActivatedHistoryClaimsAgain: an activation from history does not reuse the claim that the set
// was created with.
func TestActivatedHistoryClaimsAgain(t *testing.T) {
	t.Parallel()
	for _, archived := range []bool{false, true} {
		server := newServer().Build()
		s := reconciliationOf(server, server)
		made, err := s.newSet(1)
		require.NoError(t, err)
		set := made.(*corev1alpha1.ObjectSet)
		set.Annotations[corev1alpha1.ClaimedAnnotation] = "true"
		if archived {
			set.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
			meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{Type: corev1alpha1.ConditionArchived, Status: "True", Reason: "Archived"})
		}
		require.NoError(t, server.Create(t.Context(), set))
		s.sets = []corev1alpha1.GenericObjectSet{set}
		if _, err := s.activate(t.Context(), set, 0); err != nil {
			t.Fatal(err)
		}
		got := &corev1alpha1.ObjectSet{}
		require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(set), got))
		if claimed := got.Annotations[corev1alpha1.ClaimedAnnotation] != ""; claimed == archived || got.Spec.Revision != 2 {
			t.Errorf("archived: %t: the set has Claimed: %t, and the number %d", archived, claimed, got.Spec.Revision)
		}
	}
}

// TestLastNumber: if no later revision can have a higher number, an error reports it.
func TestLastNumber(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	set, err := s.newSet(math.MaxInt64)
	require.NoError(t, err)
	s.sets = []corev1alpha1.GenericObjectSet{set}
	if _, err := s.revisionState(); err == nil || !strings.Contains(err.Error(), "spec.revision of ObjectSet "+set.GetName()) {
		t.Errorf("revisionState: %v", err)
	}
	set.SetDeletionTimestamp(&metav1.Time{})
	if _, err := s.revisionState(); err != nil {
		t.Errorf("it is being deleted: %v", err)
	}
}

// TestLongRetryValue: a value that does not fit into a status does not end a rejection, and does
// not prevent one from being recorded.
func TestLongRetryValue(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	s.deployment.SetAnnotations(map[string]string{corev1alpha1.RetryAnnotation: strings.Repeat("x", limits.RetryValue+1)})
	s.deployment.ObjectDeploymentStatus().Rejected = []corev1alpha1.RejectedContent{{TemplateHash: "h"}}
	if !s.rejected(activation.Content{Hash: "h"}) {
		t.Error("a value that is too long ended a rejection")
	}
}

// Without a Package, kubectl package retry has no target.
func TestRetryCommand(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"Package": "again by kubectl package retry package/shop --namespace shop, or",
		"Other":   "again by kubectl annotate --overwrite objectdeployment/shop --namespace shop package-operator.run/retry=$(date +%s)",
	} {
		s := reconciliationOf(nil, nil)
		s.current = &corev1alpha1.ObjectSet{}
		s.current.SetAnnotations(map[string]string{corev1alpha1.RolledBackFromAnnotation: "3"})
		s.deployment.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: corev1alpha1.GroupVersion.String(), Kind: kind, Name: "shop", UID: "p", Controller: ptr.To(true)}})
		if _, text := s.rollbackMessage(); !strings.Contains(text, want) {
			t.Errorf("%s: %s", kind, text)
		}
	}
}

// TestRollbackMessage: a rejection by a user is not reported as a missed deadline, and the other
// way round.
func TestRollbackMessage(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	s.current = &corev1alpha1.ObjectSet{}
	s.current.ObjectSetSpec().Revision = 4
	failed := &corev1alpha1.ObjectSet{}
	failed.Spec.Revision, failed.Annotations = 3, map[string]string{corev1alpha1.HashAnnotation: "failed"}
	s.sets = []corev1alpha1.GenericObjectSet{failed, s.current}
	s.current.SetAnnotations(map[string]string{corev1alpha1.RolledBackFromAnnotation: "3"})
	for _, reason := range []string{corev1alpha1.ReasonUser, corev1alpha1.ReasonProgressDeadlineExceeded} {
		other := corev1alpha1.ReasonUser
		if reason == other {
			other = corev1alpha1.ReasonProgressDeadlineExceeded
		}
		s.deployment.ObjectDeploymentStatus().Rejected = []corev1alpha1.RejectedContent{{TemplateHash: "failed", Reason: reason}, {TemplateHash: "later", Reason: other}}
		why, text := s.rollbackMessage()
		if missed := strings.Contains(text, "missed its deadline"); why != reason || missed != (reason == corev1alpha1.ReasonProgressDeadlineExceeded) {
			t.Errorf("rejected by %s: %s: %s", reason, why, text)
		}
	}
	s.deployment.ObjectDeploymentStatus().Rejected = []corev1alpha1.RejectedContent{{
		TemplateHash: "failed", Reason: corev1alpha1.ReasonProgressDeadlineExceeded, Message: "Revision 3 missed its deadline: Deployment web: surplus replicas are still there",
	}}
	const want = "Revision 3 missed its deadline: Deployment web: surplus replicas are still there. Revision 4 is in charge in its place. Ask for other content, "
	if _, text := s.rollbackMessage(); !strings.HasPrefix(text, want) {
		t.Error(text)
	}
}

// TestStatefulObjectsOfRollbacks: only a rollback leaves stateful objects. The deletion of the
// deployment does not, and neither does an upgrade away from rejected content. A rollback leaves
// them even if the rejection changes, and also after a restart.
func TestStatefulObjectsOfRollbacks(t *testing.T) {
	t.Parallel()
	rejected := func(s *reconciliation) {
		s.deployment.ObjectDeploymentStatus().Rejected = []corev1alpha1.RejectedContent{{TemplateHash: activation.HashOf(s.sets[1])}}
	}
	rolledBack := func(s *reconciliation) {
		s.sets[0].SetAnnotations(map[string]string{corev1alpha1.RolledBackFromAnnotation: "2"})
	}
	deleted := func(s *reconciliation) { s.deployment.SetDeletionTimestamp(&metav1.Time{Time: s.Now()}) }
	for name, tc := range map[string]struct {
		given []func(*reconciliation)
		left  bool
	}{
		"rejected, and no earlier success":     {given: []func(*reconciliation){rejected}},
		"rejected, and the deployment deleted": {given: []func(*reconciliation){rejected, deleted}},
		"rolled back":                          {given: []func(*reconciliation){rejected, rolledBack}, left: true},
		"rolled back, and the rejection ended": {given: []func(*reconciliation){rolledBack}, left: true},
		"rolled back, and then deleted":        {given: []func(*reconciliation){rejected, rolledBack, deleted}},
		"activated again after it was rolled back": {given: []func(*reconciliation){rolledBack, func(s *reconciliation) {
			s.sets[1].ObjectSetSpec().Revision, s.sets[1].ObjectSetStatus().Revision = 4, 4
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reconciliationOf(nil, nil)
			s.Target.Cluster = unstarted(t, "http://unused", func(schema.GroupKind) {})
			for i := range int64(2) {
				set, err := s.newSet(i + 1)
				require.NoError(t, err)
				set.SetUID(types.UID(fmt.Sprint("set-", i+1)))
				set.ObjectSetSpec().Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Objects: []corev1alpha1.ObjectSetObject{
					{Object: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data"}}`)}},
					{Object: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"data"}}`)}},
				}}}
				s.sets = append(s.sets, set)
			}
			for i := range tc.given { // the loaded revisions remain
				require.NoError(t, s.loadSets(t.Context()))
				tc.given[i](s)
			}
			require.NoError(t, s.loadSets(t.Context()))
			objs := s.revisionOf(s.sets[1]).Phases[0].Objects
			if objs[0].Left != tc.left || objs[1].Left || s.revisionOf(s.sets[0]).Phases[0].Objects[0].Left {
				t.Errorf("the claim is left: %t", objs[0].Left)
			}
		})
	}
}

// TestLate: a revision gives way only after it could progress for its whole deadline: not right
// after a restart, a pause or an outage of its target, and not while it is available.
func TestLate(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	now := begin
	dep, set := &corev1alpha1.ObjectDeployment{}, &corev1alpha1.ObjectSet{}
	dep.Spec.OnDeadline, dep.Spec.ProgressDeadlineSeconds = corev1alpha1.DeadlineRollback, ptr.To[int32](60)
	set.Spec.Revision, set.Spec.LifecycleState = 2, corev1alpha1.ObjectSetLifecycleStateActive
	set.CreationTimestamp = metav1.NewTime(begin.Add(-time.Hour))
	s := &reconciliation{Reconciler: &Reconciler{Home: Home{Now: func() time.Time { return now }}}, deployment: dep, current: set}
	restart := func() {
		s.state = &state{rollout: engine.New(objects.Owner{Names: apinames.Default, UID: ""})}
	}
	is := func(conds *[]metav1.Condition, typ, reason string, status metav1.ConditionStatus) {
		meta.SetStatusCondition(conds, metav1.Condition{Type: typ, Status: status, Reason: reason})
	}
	for _, step := range []struct {
		what   string
		passes time.Duration
		change func()
		want   bool
	}{
		{"an hour after its creation the manager starts", 0, restart, false},
		{"it has a part of its deadline", 59 * time.Second, nil, false},
		{"it has all of it", time.Second, nil, true},
		{"the deployment is paused", 0, func() { dep.Spec.Paused = true }, false},
		{"and continues after an hour", time.Hour, func() { dep.Spec.Paused = false }, false},
		{"all of the deadline has passed again", time.Minute, nil, true},
		{"a user pauses the set", 0, func() { set.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStatePaused }, false},
		{"and resumes it after an hour", time.Hour, func() { set.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateActive }, false},
		{"all of the deadline has passed once more", time.Minute, nil, true},
		{"it is available, and waits for its success delay", 0, func() { is(&set.Status.Conditions, corev1alpha1.ConditionAvailable, "A", "True") }, false},
		{"it is not available any more", 0, func() { is(&set.Status.Conditions, corev1alpha1.ConditionAvailable, "A", "False") }, true},
		{"the manager starts again without having reported a status", 0, restart, false},
		{"one that it reported before gives way at once", 0, func() {
			dep.Status.Revision = 2
			is(&dep.Status.Conditions, corev1alpha1.ConditionProgressing, corev1alpha1.ReasonProgressDeadlineExceeded, "False")
			restart()
		}, true},
		{"what it reported is of another revision", 0, func() { dep.Status.Revision = 1 }, false},
		{"all of its deadline has passed for the fourth time", time.Minute, nil, true},
		{"it must not write when another revision replaces it", 0, func() {
			_ = s.attend([]func(context.Context) error{func(context.Context) error { return leadership.ErrNotLeading }})(t.Context())
		}, false},
		{"which has ended", 59 * time.Second, nil, false},
		{"all of its deadline has passed since", time.Second, nil, true},
	} {
		now = now.Add(step.passes)
		if step.change != nil {
			step.change()
		}
		require.Equal(t, step.want, s.late(), fmt.Sprintf("%s: late", step.what))
	}
}
