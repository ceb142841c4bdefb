package harness

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// report fills in the status of a pod.
func (k *Kubelet) report(ctx context.Context, pod *corev1.Pod, w *podWorker, found bool, status *corev1.PodStatus) {
	container := &pod.Spec.Containers[0]
	s := corev1.ContainerStatus{Name: container.Name, Image: container.Image, RestartCount: w.restarts, Started: ptr.To(w.current != nil)}
	if w.last != nil && w.restarts > 0 {
		s.LastTerminationState.Terminated = w.last
	}
	status.Phase = corev1.PodRunning
	switch {
	case w.current != nil:
		s.State.Running, s.ImageID = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.current.began.Truncate(time.Second))}, container.Image
		if container.ReadinessProbe == nil {
			s.Ready = true
			break
		}
		probing, cancel := context.WithTimeout(ctx, time.Second)
		s.Ready = w.current.Ready(probing) == nil
		cancel()
	case w.last != nil && pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		s.State.Terminated = w.last
		if status.Phase = corev1.PodSucceeded; w.last.ExitCode != 0 {
			status.Phase = corev1.PodFailed
		}
	case w.last != nil:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container " + container.Name + " in pod " + pod.Name}
	case !found:
		status.Phase = corev1.PodPending
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s: not found", container.Image, container.Image)}
	default:
		status.Phase = corev1.PodPending
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	if status.StartTime == nil {
		status.StartTime = ptr.To(metav1.NewTime(time.Now().Truncate(time.Second)))
	}
	status.ContainerStatuses = []corev1.ContainerStatus{s}
	setPodCondition(status, corev1.PodInitialized, true)
	setPodCondition(status, corev1.ContainersReady, s.Ready)
	setPodCondition(status, corev1.PodReady, s.Ready)
}

func setPodCondition(status *corev1.PodStatus, typ corev1.PodConditionType, is bool) {
	c := corev1.PodCondition{Type: typ, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second))}
	if is {
		c.Status = corev1.ConditionTrue
	}
	i := slices.IndexFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == typ })
	switch {
	case i < 0:
		status.Conditions = append(status.Conditions, c)
	case status.Conditions[i].Status != c.Status:
		status.Conditions[i] = c
	}
}
