package diagnose

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// If pods cannot be created, the controllers of a Deployment and its ReplicaSet report this one
// after the other, each in its own way. The cause is the same at any point in between.
func TestOneCauseHasOneAnswer(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		`pods "web-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0`,
		`admission webhook "costs.example.com" denied the request: a cost centre is missing`,
		`pods "web-1" is forbidden: error looking up service account shop/web: serviceaccount "web" not found`,
	} {
		var first cause
		for _, reports := range [][]string{
			{"event"}, {"ReplicaSet"}, {"event", "ReplicaSet"}, {"ReplicaSet", "Deployment"}, {"event", "ReplicaSet", "Deployment"},
		} {
			c := causeOfMissingPods(t, message, reports)
			if c.object != "ReplicaSet shop/web-1" || first.object != "" && c != first {
				t.Errorf("with what %s reports:\n got %+v\nwant %+v", strings.Join(reports, ", "), c, first)
			}
			first = c
		}
	}
}

// causeOfMissingPods explains a Deployment whose pods cannot be created, after some of the
// controllers have reported it.
func causeOfMissingPods(t *testing.T, message string, reports []string) cause {
	t.Helper()
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "deployment"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"}}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "set", Labels: labels}}
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "deployment", Controller: ptr.To(true)}}
	all := []client.Object{deployment, set}
	if slices.Contains(reports, "Deployment") {
		failure := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message}
		deployment.Status.Conditions = append(deployment.Status.Conditions, failure)
	}
	if slices.Contains(reports, "ReplicaSet") {
		set.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message}}
	}
	if slices.Contains(reports, "event") {
		event := warning("FailedCreate", "Error creating: "+message, 0)
		event.Namespace, event.Name, event.InvolvedObject.UID = "shop", "failed", "set"
		all = append(all, &event)
	}
	byUID := func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }
	e := &explainer{client: fake.NewClientBuilder().WithObjects(all...).WithIndex(&corev1.Event{}, "involvedObject.uid", byUID).Build()}
	f, err := e.object(t.Context(), objects.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, "Deployment shop/web", "missing .status.conditions")
	require.NoError(t, err)
	return f.best()
}

// A StatefulSet in order waits for the unready pod with the lowest ordinal.
func TestOutdatedPodsInOrder(t *testing.T) {
	t.Parallel()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "store", UID: "set", Generation: 2}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "store"}}
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 2, CurrentRevision: "store-new", UpdateRevision: "store-new"}
	all := []client.Object{set}
	for _, name := range []string{"store-10", "store-2", "store-3"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "store", appsv1.ControllerRevisionHashLabelKey: "store-bad"}}}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "store", UID: "set", Controller: ptr.To(true)}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		all = append(all, pod)
	}
	byUID := func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }
	e := &explainer{client: fake.NewClientBuilder().WithObjects(all...).WithIndex(&corev1.Event{}, "involvedObject.uid", byUID).Build()}
	f, err := e.object(t.Context(), objects.Key{Group: "apps", Kind: "StatefulSet", Namespace: "shop", Name: "store"}, "StatefulSet shop/store", "not ready")
	if c := f.best(); err != nil || c.reason != ReasonOutdatedPod || c.object != "Pod shop/store-2" {
		t.Errorf("%+v, %v", c, err)
	}
}

// An unready pod of an earlier template that its StatefulSet waits for has to be deleted by hand,
// because a rollback leaves it behind. A pod that the controller replaces by itself is explained
// like any other.
func TestOutdatedPod(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		change func(*appsv1.StatefulSet, *corev1.Pod)
		want   Reason
	}{
		"in order": {func(*appsv1.StatefulSet, *corev1.Pod) {}, ReasonOutdatedPod},
		"on deletion only": {func(s *appsv1.StatefulSet, _ *corev1.Pod) {
			s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}, ReasonOutdatedPod},
		"in parallel": {func(s *appsv1.StatefulSet, _ *corev1.Pod) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }, ReasonCrash},
		"of the present template": {func(_ *appsv1.StatefulSet, p *corev1.Pod) {
			p.Labels[appsv1.ControllerRevisionHashLabelKey] = "store-new"
		}, ReasonCrash},
		"of a template that is not seen": {func(s *appsv1.StatefulSet, _ *corev1.Pod) { s.Generation = 3 }, ReasonCrash},
		"held back by a partition": {func(s *appsv1.StatefulSet, _ *corev1.Pod) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](1)}
		}, ReasonCrash},
		"without a partition, as default": {func(s *appsv1.StatefulSet, _ *corev1.Pod) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0)}
		}, ReasonOutdatedPod},
	} {
		labels := map[string]string{"app": "store"}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "store", UID: "set", Generation: 2}}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 2, CurrentRevision: "store-new", UpdateRevision: "store-new"}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "store-1", Labels: map[string]string{"app": "store", appsv1.ControllerRevisionHashLabelKey: "store-bad"}}}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "store", UID: "set", Controller: ptr.To(true)}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		tc.change(set, pod)
		byUID := func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }
		e := &explainer{client: fake.NewClientBuilder().WithObjects(set, pod).WithIndex(&corev1.Event{}, "involvedObject.uid", byUID).Build()}
		f, err := e.object(t.Context(), objects.Key{Group: "apps", Kind: "StatefulSet", Namespace: "shop", Name: "store"}, "StatefulSet shop/store", "not ready")
		require.NoError(t, err)
		c := f.best()
		if c.reason != tc.want || c.object != "Pod shop/store-1" || (c.reason == ReasonOutdatedPod) != strings.HasSuffix(c.remedy, ": kubectl -n shop delete pod store-1") {
			t.Errorf("%s: %+v", reason, c)
		}
	}
}
