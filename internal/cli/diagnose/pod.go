package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"lockstep.run/lockstep/internal/cli/terminal"
)

// pod examines a pod: its scheduling, its containers, and its events.
func pod(p *corev1.Pod, events []corev1.Event) finding {
	object := "Pod " + p.Namespace + "/" + p.Name
	f := finding{link: Link{Object: object, State: string(p.Status.Phase), Message: p.Status.Message}}
	if c := condition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		f.link.State, f.link.Message = "not scheduled", c.Message
		f.cause = cause{
			weight: weightPod, reason: ReasonUnschedulable, object: object,
			text:   object + " cannot be scheduled: " + c.Message,
			remedy: "Make room on the nodes, or relax the pod's constraints: requests, selectors, affinities, tolerations.",
		}
	}

	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if c, bad := container(p, &s, events); bad {
			f.below = append(f.below, c)
		}
	}

	// An evicted pod has no status of containers.
	if p.Status.Phase == corev1.PodFailed && len(f.below) == 0 {
		f.cause = cause{
			weight: weightPod, reason: ReasonCrash, object: object,
			text: object + " has failed: " + cmp.Or(p.Status.Message, p.Status.Reason, "no reason is given"), remedy: logs(p, "", false),
		}
	}

	f.below = append(f.below, eventFindings(object, slices.DeleteFunc(slices.Clone(events), func(e corev1.Event) bool { return overcome(p, &e) }))...)
	return f
}

// overcome reports whether an event is outdated.
func overcome(p *corev1.Pod, e *corev1.Event) bool {
	switch e.Reason {
	case "FailedScheduling":
		return p.Spec.NodeName != ""
	case "Unhealthy":
		// Events stay for an hour. A probe's event from before the pod was ready does not explain
		// why it is not ready now.
		ready := condition(p, corev1.PodReady)
		return ready != nil && seen(e).Before(ready.LastTransitionTime.Add(-probeSlack))
	case "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox":
		return slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
			return s.State.Running != nil || s.State.Terminated != nil || s.RestartCount > 0
		})
	}

	return false
}

// probeSlack is the maximum time between the first failure of a probe and the moment at which its
// pod stops being ready.
const probeSlack = time.Minute

// condition returns a condition of a pod; nil if it has none of the type.
func condition(p *corev1.Pod, typ corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == typ })
	if i < 0 {
		return nil
	}
	return &p.Status.Conditions[i]
}

// container returns the finding about a container, and false if it is healthy. Creating and
// initializing are healthy for a while, and events report their problems.
func container(p *corev1.Pod, s *corev1.ContainerStatus, events []corev1.Event) (f finding, bad bool) {
	object := fmt.Sprintf("Pod %s/%s", p.Namespace, p.Name)
	f.link = Link{Object: "container " + s.Name}
	c := cause{weight: weightPod, object: object}
	switch {
	case s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "ContainerCreating" && s.State.Waiting.Reason != "PodInitializing":
		w := s.State.Waiting
		f.link.State, f.link.Message = w.Reason, w.Message
		c = waiting(p, s, c, events)
	case s.State.Terminated != nil && (s.State.Terminated.ExitCode != 0 || s.RestartCount > 0 && alwaysRestarted(p, s.Name)):
		f.link.State, f.link.Message = ended(s.State.Terminated), s.State.Terminated.Message
		c = crashed(p, s, c, events)
	case s.State.Running != nil && !s.Ready && !isInit(p, s.Name):
		f.link.State = "not ready"
		if last := s.LastTerminationState.Terminated; last != nil {
			f.link.Message = fmt.Sprintf("restarted %s, %s before", terminal.Count(int(s.RestartCount), "time"), ended(last))
		}
		c.weight, c.reason = weightEvent, ReasonNotReady
		c.text = fmt.Sprintf("container %s of %s runs but is not ready", s.Name, object)
		c.remedy = "Its readiness probe fails, or has not run yet. " + logs(p, s.Name, false)
	default:
		return f, false
	}

	f.cause = c
	return f, true
}

// waiting returns the cause of a container that waits to start.
func waiting(p *corev1.Pod, s *corev1.ContainerStatus, c cause, events []corev1.Event) cause {
	w := s.State.Waiting
	switch w.Reason {
	case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		c.reason = ReasonImagePull
		c.text = fmt.Sprintf("the image %s of container %s of %s cannot be pulled: %s%s", imageOf(p, s), s.Name, c.object, w.Reason, said(w.Message))
		c.remedy = "Check that the image exists under that name, that the node reaches and trusts its registry, and that the pod's service account has a pull secret for it."
	case "CrashLoopBackOff":
		c = crashed(p, s, c, events)
	default:
		c.reason = ReasonContainer
		c.text = fmt.Sprintf("container %s of %s cannot start: %s%s", s.Name, c.object, w.Reason, said(w.Message))
		c.remedy = "Check the references of the container: ConfigMaps, Secrets, volumes, its command. " +
			fmt.Sprintf("kubectl -n %s describe pod %s", p.Namespace, p.Name)
		if strings.Contains(w.Message, "runAsNonRoot") || strings.Contains(w.Message, "non-root") {
			c.remedy = "Set securityContext.runAsUser of the container to a user other than 0, or use an image whose user is a number other than 0."
		}
	}

	return c
}

// crashed is the cause for a container that has ended. Between two starts the kubelet might report
// either state, the end or the back-off.
func crashed(p *corev1.Pod, s *corev1.ContainerStatus, c cause, events []corev1.Event) cause {
	last, again, how := s.State.Terminated, s.RestartCount > 0, ""
	if last == nil {
		last, again = s.LastTerminationState.Terminated, true
	}
	if last != nil {
		how = "it " + ended(last) + said(last.Message)
	}

	c.reason, c.remedy = ReasonCrash, afterEnd(p, s.Name, last, s.State.Terminated == nil)
	c.text = fmt.Sprintf("container %s of %s ", s.Name, c.object)
	if !again {
		c.text += strings.TrimPrefix(how, "it ")
		return c
	}
	restarts := terminal.Count(int(s.RestartCount), "restart") + " so far"
	if failed := livenessFailure(s.Name, events); failed != "" {
		c.text += "is restarted again and again, " + restarts + ", because it does not pass its liveness probe: " + failed
		c.remedy = "Correct the probe or its endpoint, or give the container more time with a startupProbe. " + logs(p, s.Name, true)
		return c
	}

	c.text += strings.TrimSuffix("crashes again and again, "+restarts+": "+how, ": ")
	return c
}

// livenessFailure returns the kubelet's message about ending a container because of its liveness
// probe.
func livenessFailure(container string, events []corev1.Event) string {
	var latest *corev1.Event
	for i := range events {
		e := &events[i]
		of := e.InvolvedObject.FieldPath
		if e.Reason != "Unhealthy" || !strings.HasPrefix(e.Message, "Liveness probe failed") || of != "" && !strings.Contains(of, "{"+container+"}") {
			continue
		}
		if latest == nil || seen(e).After(seen(latest)) {
			latest = e
		}
	}

	if latest == nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(latest.Message, "Liveness probe failed"), ":"))
}

// afterEnd is the remedy for a container that has ended.
func afterEnd(p *corev1.Pod, container string, t *corev1.ContainerStateTerminated, previous bool) string {
	switch {
	case t == nil:
	case t.Reason == "OOMKilled":
		return fmt.Sprintf("Raise resources.limits.memory of container %s, or reduce its memory usage.", container)
	case t.Reason == "StartError", t.Reason == "ContainerCannotRun":
		return fmt.Sprintf("It never ran, so it has no log. Correct command and args of container %s, or its image.", container)
	}
	return logs(p, container, previous)
}

// imageOf returns the image in the spec, because the status might use another name.
func imageOf(p *corev1.Pod, s *corev1.ContainerStatus) string {
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if c.Name == s.Name {
			return c.Image
		}
	}
	return s.Image
}

// isInit reports whether a container is an init container that ends. A sidecar is an init container
// with a restart policy.
func isInit(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name && c.RestartPolicy == nil })
}

// alwaysRestarted reports whether a container is not meant to end.
func alwaysRestarted(p *corev1.Pod, name string) bool {
	return (p.Spec.RestartPolicy == corev1.RestartPolicyAlways || p.Spec.RestartPolicy == "") && !isInit(p, name)
}

// ended describes the end of a container.
func ended(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason == "OOMKilled":
		return "was killed because it used more memory than its limit"
	case t.Signal != 0:
		return fmt.Sprintf("was ended by signal %d", t.Signal)
	}
	return fmt.Sprintf("ended with exit code %d", t.ExitCode)
}

// said returns a message to append; empty if there is none.
func said(message string) string {
	if message = strings.TrimSpace(message); message == "" {
		return ""
	}
	return ": " + message
}

// logs is the command that shows the log of a container. previous selects the log before the last
// restart.
func logs(p *corev1.Pod, container string, previous bool) string {
	text := fmt.Sprintf("See its log: kubectl -n %s logs %s", p.Namespace, p.Name)
	if container != "" {
		text += " -c " + container
	}
	if previous {
		text += " --previous"
	}
	return text
}
