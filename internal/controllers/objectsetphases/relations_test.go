package objectsetphases

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/properties"
	"lockstep.run/lockstep/test/require"
)

func after(names ...string) []corev1alpha1.PreviousRevisionReference {
	var refs []corev1alpha1.PreviousRevisionReference
	for _, name := range names {
		refs = append(refs, corev1alpha1.PreviousRevisionReference{Name: name})
	}
	return refs
}

func TestRelationOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason    string
		me, other relative
		want      relation
	}{
		{"itself", relative{uid: "a", deployment: "shop", revision: 2}, relative{uid: "a", deployment: "shop", revision: 1}, unrelated},
		{"an earlier revision", relative{deployment: "shop", revision: 2}, relative{uid: "b", deployment: "shop", revision: 1}, predecessor},
		{"a later revision", relative{deployment: "shop", revision: 2}, relative{uid: "b", deployment: "shop", revision: 3}, successor},
		{"the same revision", relative{deployment: "shop", revision: 2}, relative{uid: "b", deployment: "shop", revision: 2}, unrelated},
		{"of another deployment", relative{deployment: "shop", revision: 2}, relative{uid: "b", deployment: "store", revision: 1}, unrelated},
		{"without a deployment", relative{revision: 2}, relative{uid: "b", revision: 1}, unrelated},
		{"named", relative{revision: 1, previous: after("b")}, relative{uid: "b", name: "b", revision: 1}, predecessor},
		{"its set is named", relative{previous: after("set-1")}, relative{uid: "b", name: "set-1-deploy", set: "set-1"}, predecessor},
		{"names it", relative{name: "a", revision: 1}, relative{uid: "b", previous: after("a"), revision: 1}, successor},
		{"names its set", relative{name: "set-1-deploy", set: "set-1"}, relative{uid: "b", set: "set-2", previous: after("set-1")}, successor},
		{"each names the other", relative{name: "a", previous: after("b"), revision: 2}, relative{uid: "b", name: "b", previous: after("a"), revision: 1}, predecessor},
		{"each names the other, in the same revision", relative{name: "a", previous: after("b"), revision: 1}, relative{uid: "b", name: "b", previous: after("a"), revision: 1}, unrelated},
		{"the label comes before names", relative{deployment: "shop", revision: 2, previous: after("b")}, relative{uid: "b", name: "b", deployment: "shop", revision: 3}, successor},
		{"of the same set", relative{set: "set-1", previous: after("x")}, relative{uid: "b", name: "x", set: "set-1"}, unrelated},
		{"its own set", relative{set: "set-1", deployment: "shop", revision: 2}, relative{uid: "b", name: "set-1", deployment: "shop", revision: 1}, unrelated},
	} {
		require.Equal(t, tc.want, tc.me.relationOf(&tc.other), tc.reason)
	}
}

// TestRelationsAreOpposite: if one owner hands over, the other one takes over; otherwise neither
// does.
func TestRelationsAreOpposite(t *testing.T) {
	t.Parallel()
	names := rapid.SampledFrom([]string{"a", "b", "set-1", "set-2"})
	draw := rapid.Custom(func(t *rapid.T) *relative {
		return &relative{
			uid: types.UID(names.Draw(t, "uid")), name: names.Draw(t, "name"), set: rapid.SampledFrom([]string{"", "set-1", "set-2"}).Draw(t, "set"),
			deployment: rapid.SampledFrom([]string{"", "shop"}).Draw(t, "deployment"), revision: rapid.Int64Range(0, 3).Draw(t, "revision"),
			previous: after(rapid.SliceOfN(names, 0, 2).Draw(t, "previous")...),
		}
	})
	opposite := map[relation]relation{unrelated: unrelated, predecessor: successor, successor: predecessor}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if there, back := a.relationOf(b), b.relationOf(a); back != opposite[there] {
			t.Errorf("%+v is %d to %+v, which is %d to it", b, there, a, back)
		}
	})
}

func TestRelationToDeployment(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		owning []int64
		want   relation
	}{
		{"its own revision alone", []int64{2}, unrelated},
		{"an earlier revision still owns objects", []int64{1, 2}, predecessor},
		{"a later revision", []int64{2, 3}, successor},
		{"both", []int64{1, 2, 3}, successor},
		{"none", nil, unrelated},
	} {
		require.Equal(t, tc.want, relationToDeployment(2, tc.owning), tc.reason)
	}
}

func TestPhaseName(t *testing.T) {
	t.Parallel()
	made := func(kind, set string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: corev1alpha1.GroupVersion.String(), Kind: kind, Name: set, Controller: ptr.To(true)}}
	}
	for _, tc := range []struct {
		reason, name string
		refs         []metav1.OwnerReference
		want         string
	}{
		{"by hand", "shop-1-deploy", nil, "shop-1-deploy"},
		{"of a set", "shop-1-deploy", made("ObjectSet", "shop-1"), "deploy"},
		{"of a set with another name", "other", made("ObjectSet", "shop-1"), "other"},
		{"no set with this name", "shop-1-", made("ObjectSet", "shop-1"), "shop-1-"},
		{"of something else", "shop-1-deploy", made("Package", "shop-1"), "shop-1-deploy"},
	} {
		phase := &corev1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: tc.name, OwnerReferences: tc.refs}}
		require.Equal(t, tc.want, phaseName(phase), tc.reason)
	}
}

// The remaining objects of a phase are spared for a later revision, unless that one leaves, too.
func TestReplaced(t *testing.T) {
	t.Parallel()
	deleted := ptr.To(metav1.NewTime(time.Unix(1e9, 0)))
	for reason, tc := range map[string]struct {
		phase, set                                  bool // what the later revision has: a phase of the class, objects of the deployment
		phaseDeleted, deploymentDeleted, deployment bool
		elsewhere                                   bool // the class is of another cluster
		want                                        bool
	}{
		"no later revision":                  {deployment: true},
		"a later phase":                      {phase: true, deployment: true, want: true},
		"a later phase that leaves":          {phase: true, phaseDeleted: true, deployment: true},
		"a later set without a phase":        {set: true, deployment: true, want: true},
		"a later set of a deleted package":   {set: true, deployment: true, deploymentDeleted: true},
		"a later phase of a deleted package": {phase: true, deployment: true, deploymentDeleted: true},
		"a later phase of an absent package": {phase: true},
		"a later phase in another cluster":   {phase: true, elsewhere: true, want: true},
	} {
		labels := map[string]string{corev1alpha1.PhaseClassLabel: "default", corev1alpha1.ObjectDeploymentLabel: "shop"}
		me := &corev1alpha1.ObjectSetPhase{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "shop-1-deploy", UID: "phase-1", Labels: labels}, Spec: corev1alpha1.ObjectSetPhaseSpec{Revision: 1},
		}
		all := []client.Object{me}
		if tc.phase {
			later := &corev1alpha1.ObjectSetPhase{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "shop-2-deploy", UID: "phase-2", Labels: labels}, Spec: corev1alpha1.ObjectSetPhaseSpec{Revision: 2},
			}
			if tc.phaseDeleted {
				later.DeletionTimestamp, later.Finalizers = deleted, []string{"a/b"}
			}
			all = append(all, later)
		}
		if tc.set {
			all = append(all, &corev1alpha1.ObjectSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "shop-2", UID: "set-2", Labels: labels, OwnerReferences: []metav1.OwnerReference{{
					APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "shop", UID: "shop", Controller: ptr.To(true),
				}}},
				Spec: corev1alpha1.ObjectSetSpec{Revision: 2},
			})
		}
		if tc.deployment {
			deployment := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "shop", UID: types.UID("shop")}}
			if tc.deploymentDeleted {
				deployment.DeletionTimestamp, deployment.Finalizers = deleted, []string{"a/b"}
			}
			all = append(all, deployment)
		}
		scheme := runtime.NewScheme()
		require.NoError(t, corev1alpha1.AddToScheme(scheme))
		c := &class{name: "default", reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).Build(), fresh: mutationcache.NewStore()}
		if tc.elsewhere {
			c.target = &corev1alpha1.TargetReference{}
		}
		of, _, err := c.Relate(t.Context(), me)
		if err != nil || of.Replaced != tc.want || tc.want && of.Successors.Len() == 0 {
			t.Errorf("%s: %+v, %v", reason, of, err)
		}
	}
}

func stored(raw string) []corev1alpha1.ObjectSetObject {
	return []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(raw)}}}
}

// TestPhaseSet: an ObjectSetPhase is a set with one phase, and its status is stored whole. A status
// that is read again equals the written one, so that it is not written twice.
func TestPhaseSet(t *testing.T) {
	t.Parallel()
	probe := corev1alpha1.ObjectSetProbe{Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ConfigMap"}}}
	phase := &corev1alpha1.ObjectSetPhase{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deploy", UID: "uid", Generation: 2},
		Spec: corev1alpha1.ObjectSetPhaseSpec{
			Paused: true, Revision: 3, Previous: after("before"), Objects: stored(`{"kind": "ConfigMap"}`), AvailabilityProbes: []corev1alpha1.ObjectSetProbe{probe},
		},
	}
	phase.Annotations = map[string]string{corev1alpha1.ServiceAccountAnnotation: "small"}
	if there := newPhaseSet(phase, &corev1alpha1.TargetReference{}); there.ObjectSetSpec().ServiceAccountName != "" {
		t.Error("an agent writes as an account, not as the user of its kubeconfig")
	}
	set := newPhaseSet(phase, nil)
	want := corev1alpha1.ObjectSetSpec{LifecycleState: corev1alpha1.ObjectSetLifecycleStatePaused, Revision: 3, Previous: after("before")}
	want.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "deploy", Objects: stored(`{"kind": "ConfigMap"}`)}}
	want.ServiceAccountName = "small"
	want.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{probe}
	require.Equal(t, &want, set.ObjectSetSpec(), "its spec")
	require.Equal(t, &corev1alpha1.ObjectSetStatus{}, set.ObjectSetStatus(), "the status of a new one")

	*set.ObjectSetStatus() = corev1alpha1.ObjectSetStatus{
		Conditions: []metav1.Condition{{Type: "Available"}}, ObservedGeneration: 2, Revision: 3,
		Phases:       []corev1alpha1.PhaseStatus{{Name: "deploy", State: corev1alpha1.PhaseStateProbing, Ready: 1, Total: 2}},
		ControllerOf: []corev1alpha1.ControlledObjectReference{{Name: "a"}}, Blocking: []corev1alpha1.BlockingObject{{Name: "a"}},
	}
	copied := set.DeepCopyObject().(*phaseSet)
	set.Flush()
	if phase.Status.State != corev1alpha1.PhaseStateProbing || phase.Status.TotalObjects != 2 {
		t.Errorf("stored as %+v", phase.Status)
	}
	require.Equal(t, set.ObjectSetStatus(), newPhaseSet(phase, nil).ObjectSetStatus(), "read again")
	if set.ObjectSetStatus().Conditions[0].Type = "Changed"; copied.StatusConditions() == nil || (*copied.StatusConditions())[0].Type != "Available" {
		t.Error("a copy shares its status")
	}
	require.Equal(t, "Available", phase.Status.Conditions[0].Type, "the stored status is shared")
}

// A manager also has deployments, but reconciles at most as many owners at a time as an agent,
// which only has phases.
func TestWorkersAreShared(t *testing.T) {
	t.Parallel()
	manager, agent := (&class{}).settings(), (&class{target: &corev1alpha1.TargetReference{}}).settings()
	if got := limits.DeploymentWorkers + manager.Workers; manager.Workers == 0 || got != agent.Workers {
		t.Errorf("a manager has %d workers, an agent %d", got, agent.Workers)
	}
}

func TestMain(m *testing.M) { properties.Main(m, 400) }
