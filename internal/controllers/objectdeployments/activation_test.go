package objectdeployments

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/objects"
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
			server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(old).WithObjects(old, current).
				WithIndex(old, ownerIndex, func(client.Object) []string { return []string{"ObjectDeployment shop/shop"} }).Build()
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
		server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(good).WithObjects(good, failing, newest).
			WithIndex(good, ownerIndex, func(client.Object) []string { return []string{"ObjectDeployment shop/shop"} }).Build()
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
	c := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(
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
		if got := s.rollout.Adopt(t.Context(), owner); got != want {
			t.Errorf("%s: %q, want %q", owner, got, want)
		}
	}
}
