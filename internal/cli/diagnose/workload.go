package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

// podsExamined is the maximum number of pods that are examined for a workload.
const podsExamined = 3

// dependents examines the objects that an object runs.
func (e *explainer) dependents(ctx context.Context, key objects.Key, live *unstructured.Unstructured) ([]finding, error) {
	switch key.GroupKind() {
	case deployment:
		return e.replicaSet(ctx, live)
	case statefulSet, schema.GroupKind{Group: "apps", Kind: "DaemonSet"},
		schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Kind: "ReplicationController"}, job:
		return e.pods(ctx, live)
	case schema.GroupKind{Kind: "Pod"}:
		p := &corev1.Pod{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, p) != nil {
			return nil, nil
		}
		return pod(p, nil).below, nil // its events follow as for any object
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		if phase == "Bound" {
			return nil, nil
		}
		return []finding{{
			link: Link{Object: "phase of the claim", State: phase},
			cause: cause{
				weight: weightCondition, reason: ReasonVolume, object: objectdiff.Short(key), text: objectdiff.Short(key) + " has no volume: it is " + phase,
				remedy: "Check its storage class. A claim can also wait for the first pod that uses it.",
			},
		}}, nil
	}

	return nil, nil
}

// selectorOf returns the selector of a workload. It selects everything if the workload has no
// selector.
func selectorOf(live *unstructured.Unstructured) labels.Selector {
	raw, _, _ := unstructured.NestedMap(live.Object, "spec", "selector")
	var selector metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector) != nil {
		return labels.Everything()
	}
	s, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return labels.Everything()
	}

	return s
}

// readable returns an error of a read. It ignores Forbidden, because the search continues without
// these objects.
func readable(what string, err error) error {
	if err == nil || apierrors.IsForbidden(err) {
		return nil
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// replicaSet examines the newest ReplicaSet.
func (e *explainer) replicaSet(ctx context.Context, deployment *unstructured.Unstructured) ([]finding, error) {
	list := &appsv1.ReplicaSetList{}
	err := e.client.List(ctx, list, client.InNamespace(deployment.GetNamespace()), client.MatchingLabelsSelector{Selector: selectorOf(deployment)})
	if err != nil {
		return nil, readable("ReplicaSets", err)
	}
	// A selector can also match the ReplicaSets of another Deployment.
	sets := slices.DeleteFunc(list.Items, func(rs appsv1.ReplicaSet) bool { return !metav1.IsControlledBy(&rs, deployment) })
	if len(sets) == 0 {
		return nil, nil
	}

	newest := slices.MaxFunc(sets, func(a, b appsv1.ReplicaSet) int { return cmp.Compare(revision(&a), revision(&b)) })
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&newest)
	if err != nil {
		return nil, err
	}
	key := objects.Key{Group: "apps", Kind: "ReplicaSet", Namespace: newest.Namespace, Name: newest.Name}
	f := finding{link: Link{Object: objectdiff.Short(key), State: fmt.Sprintf("%d of %d pods ready", newest.Status.ReadyReplicas, ptr.Deref(newest.Spec.Replicas, 1))}}
	f.below, err = e.below(ctx, key, &unstructured.Unstructured{Object: raw})

	return []finding{f}, err
}

// revision returns the number that the Deployment's controller has given a ReplicaSet.
func revision(rs *appsv1.ReplicaSet) int {
	n, _ := strconv.Atoi(rs.Annotations["deployment.kubernetes.io/revision"])
	return n
}

// pods examines the worst pods that an object controls.
func (e *explainer) pods(ctx context.Context, owner *unstructured.Unstructured) ([]finding, error) {
	list := &corev1.PodList{}
	err := e.client.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingLabelsSelector{Selector: selectorOf(owner)})
	if err != nil {
		return nil, readable("pods", err)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, owner) || healthy(&p) })
	// The controller of a StatefulSet waits for the lowest ordinal as a number: web-2 precedes web-10.
	first := math.MaxInt
	for i := range pods {
		first = min(first, ordinal(&pods[i]))
	}
	examine := func(p *corev1.Pod, events []corev1.Event) finding {
		f := pod(p, events)
		if c, is := outdated(owner, p, first); is {
			f.cause = c
		}
		return f
	}

	weight := func(p *corev1.Pod) int {
		f := examine(p, nil)
		return f.best().weight
	}

	// Sorting without events avoids a request for each pod.
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(weight(&b), weight(&a)) })
	var found []finding
	for i := range pods[:min(len(pods), podsExamined)] {
		events, err := e.eventsOf(ctx, pods[i].Namespace, pods[i].UID)
		if err != nil {
			return nil, err
		}
		f := examine(&pods[i], events)
		lost, err := e.lostNode(ctx, &pods[i])
		if err != nil {
			return nil, err
		}
		f.below = append(f.below, lost...)
		found = append(found, f)
	}

	if more := len(pods) - podsExamined; more > 0 {
		found = append(found, finding{link: Link{Object: fmt.Sprintf("and %s that are not ready", terminal.Count(more, "more pod"))}})
	}
	return found, nil
}

// lostNode finds out that the node of a pod is not ready. Its kubelet does not answer, so the
// status and Events of the pod are outdated.
func (e *explainer) lostNode(ctx context.Context, p *corev1.Pod) ([]finding, error) {
	if p.Spec.NodeName == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	if err := e.client.Get(ctx, client.ObjectKey{Name: p.Spec.NodeName}, node); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, readable("the node of a pod", err)
	}

	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 || node.Status.Conditions[i].Status == corev1.ConditionTrue {
		return nil, nil
	}
	ready := node.Status.Conditions[i]
	object := "Node " + node.Name

	return []finding{{
		link: Link{Object: object, State: "not ready", Message: ready.Message},
		cause: cause{
			weight: weightCertain, reason: ReasonNode, object: object,
			text:   fmt.Sprintf("Node %s, where Pod %s/%s runs, is not ready since %s: %s", node.Name, p.Namespace, p.Name, ready.LastTransitionTime.UTC().Format("15:04:05 MST"), cmp.Or(ready.Message, ready.Reason)),
			remedy: "Check the node: kubectl describe node " + node.Name + ". Pods of Deployments are created on other nodes after the toleration of their pods, 5 minutes by default.",
		},
	}}, nil
}

// ordinal is the number of a pod of a StatefulSet.
func ordinal(p *corev1.Pod) int {
	n, err := strconv.Atoi(p.Name[strings.LastIndex(p.Name, "-")+1:])
	if err != nil {
		return math.MaxInt
	}
	return n
}

// outdated explains an unready pod that its StatefulSet does not replace although the template has
// changed: the controller waits for this very pod, the first one in order that is not ready. A
// rollback leaves such pods behind.
func outdated(owner *unstructured.Unstructured, p *corev1.Pod, first int) (c cause, is bool) {
	set := &appsv1.StatefulSet{}
	if owner.GroupVersionKind().GroupKind() != statefulSet || runtime.DefaultUnstructuredConverter.FromUnstructured(owner.Object, set) != nil {
		return c, false
	}
	made, now := p.Labels[appsv1.ControllerRevisionHashLabelKey], set.Status.UpdateRevision
	// A pod of the current template has another problem.
	if made == "" || now == "" || made == now || set.Status.ObservedGeneration < set.Generation || p.DeletionTimestamp != nil {
		return c, false
	}

	why := ""
	switch strategy := set.Spec.UpdateStrategy; {
	case strategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		why = "it does not replace pods by itself (updateStrategy OnDelete)"
	case set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement, ordinal(p) != first, strategy.RollingUpdate != nil && ptr.Deref(strategy.RollingUpdate.Partition, 0) > 0:
		return c, false
	default:
		why = "it does not replace pods before this one is ready (podManagementPolicy OrderedReady)"
	}

	object := "Pod " + p.Namespace + "/" + p.Name
	return cause{
		weight: weightCertain, reason: ReasonOutdatedPod, object: object,
		text: fmt.Sprintf("%s is not ready and has an earlier template (controller-revision-hash %s) than StatefulSet %s now (updateRevision %s): %s",
			object, made, set.Name, now, why),
		remedy: fmt.Sprintf("Delete the pod, so that it is created from the current template: kubectl -n %s delete pod %s", p.Namespace, p.Name),
	}, true
}

// healthy reports whether a pod is ready or has succeeded.
func healthy(p *corev1.Pod) bool {
	ready := condition(p, corev1.PodReady)
	return p.Status.Phase == corev1.PodSucceeded || ready != nil && ready.Status == corev1.ConditionTrue
}

// eventsOf lists the events of a UID. Cluster-scoped objects have theirs in the default namespace.
func (e *explainer) eventsOf(ctx context.Context, namespace string, uid types.UID) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	err := e.client.List(ctx, list, client.InNamespace(cmp.Or(namespace, metav1.NamespaceDefault)),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("involvedObject.uid", string(uid))})
	if err != nil {
		return nil, readable("events", err)
	}
	return list.Items, nil
}
