package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

const (
	relist     = 200 * time.Millisecond // between two looks at the pods, as a kubelet's at its containers
	heartbeat  = 10 * time.Second       // between two renewals of the node's Lease
	firstDelay = time.Second            // of a container that ended before; a kubelet waits 10 s
	mostDelay  = 16 * time.Second
)

// WithKubelet leaves out the simulated nodes, for a [Kubelet].
func WithKubelet() sandbox.Option {
	return sandbox.WithComponents(sandbox.Etcd, sandbox.Registry, sandbox.APIServer, sandbox.ControllerManager, sandbox.Scheduler)
}

// Program is what an image of the manager contains.
type Program struct {
	// Path of the manager.
	Path string
	// CrashesAsLeader kills each process that has acquired the Lease.
	CrashesAsLeader bool
	// Hangs stops each manager before its first instruction.
	Hangs bool
}

// Container is a process of a pod that has run, or runs.
type Container struct {
	*Process
	Pod, Image string

	began time.Time
	from  sandbox.Position // of the audit log
	ended atomic.Pointer[time.Time]
	crash atomic.Bool
}

// Ended returns when the process ended, and the zero time while it runs.
func (c *Container) Ended() time.Time { return ptr.Deref(c.ended.Load(), time.Time{}) }

// Crashed reports whether the process ended, and not in an orderly way.
func (c *Container) Crashed() bool { return c.Exited() && !c.cmd.ProcessState.Success() }

// Kill ends the process as a crash, and reports whether it still ran.
func (c *Container) Kill() bool {
	if c.Exited() {
		return false
	}
	c.Process.Kill()
	if signal := c.cmd.ProcessState.Sys().(syscall.WaitStatus); signal.Signaled() && signal.Signal() == syscall.SIGKILL {
		c.crash.Store(true)
	}
	return c.Killed()
}

// Killed reports whether [Container.Kill] ended the process.
func (c *Container) Killed() bool { return c.crash.Load() }

// Kubelet stands in for the kubelet of one node: the scheduler and the controllers of Deployments are real, and of the pods
// each first container is a process on this machine. Its program depends on the image; an image that is not known cannot be pulled.
// Readiness is that of /readyz, a container that ends is started again after a growing delay, and one of a deleted pod is stopped.
// Ignored are the token of the service account, instead of which a process has a kubeconfig of the manager's account, volumes, resources,
// security contexts, other probes, and the periods and thresholds of that of readiness.
type Kubelet struct {
	env   *Env
	audit *sandbox.Audit
	args  []string

	mu       sync.Mutex
	programs map[string]Program
	pods     map[types.UID]*podWorker
	all      []*Container
	problems []error
	renewed  time.Time
}

// podWorker is what a kubelet knows of a pod.
type podWorker struct {
	current  *Container
	restarts int32
	last     *corev1.ContainerStateTerminated
	next     time.Time // when the container may be started again
	stopped  bool
}

// StartKubelet starts a node with a kubelet. The arguments are added to those of managers.
func (e *Env) StartKubelet(tb testing.TB, args ...string) *Kubelet {
	tb.Helper()
	audit, err := e.Audit()
	require.NoError(tb, err)
	k := &Kubelet{env: e, audit: audit, args: args, programs: map[string]Program{}, pods: map[types.UID]*podWorker{}}
	require.NoError(tb, k.register(tb.Context()))
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, k.sync, relist)
	}()
	tb.Cleanup(func() {
		cancel()
		<-done
		for _, c := range k.Containers() {
			c.Stop()
			if tb.Failed() {
				tb.Logf("last lines of the log of %s, of %s:\n%s", c.Pod, c.Image, tail(c.log, 30))
			}
		}
		if tb.Failed() {
			tb.Logf("problems of the kubelet: %v", errors.Join(k.problems...))
		}
	})
	return k
}

// Release makes an image known.
func (k *Kubelet) Release(image string, program Program) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.programs[image] = program
}

// Containers returns the processes of pods so far, in the order of their start.
func (k *Kubelet) Containers() []*Container {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.all)
}

// Running returns the processes of an image that run.
func (k *Kubelet) Running(image string) []*Container {
	return slices.DeleteFunc(k.Containers(), func(c *Container) bool { return c.Image != image || c.Exited() })
}

// node is where all pods are.
func node() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}} }

func (k *Kubelet) register(ctx context.Context) error {
	n := node()
	n.Labels = map[string]string{corev1.LabelHostname: n.Name}
	if err := k.env.Client.Create(ctx, n); err != nil {
		return err
	}
	before := n.DeepCopy()
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("100"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	n.Status.Allocatable = n.Status.Capacity
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
	return k.env.Client.Status().Patch(ctx, n, client.MergeFrom(before)) // others change the node meanwhile
}

// renew says that the node is alive.
func (k *Kubelet) renew(ctx context.Context) error {
	if time.Since(k.renewed) < heartbeat {
		return nil
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node().Name}}
	spec := coordinationv1.LeaseSpec{HolderIdentity: &lease.Name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NowMicro())}
	err := k.env.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	lease.Spec = spec
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil:
		err = k.env.Client.Create(ctx, lease)
	default:
		err = k.env.Client.Update(ctx, lease)
	}
	if err == nil {
		k.renewed = time.Now()
	}
	return err
}

// sync looks at all pods. What fails is repeated; what failed last is logged where the test fails.
func (k *Kubelet) sync(ctx context.Context) {
	err := k.renew(ctx)
	pods := &corev1.PodList{}
	err = errors.Join(err, k.env.Client.List(ctx, pods))
	known := map[types.UID]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if known[pod.UID] = true; pod.Spec.NodeName == node().Name {
			err = errors.Join(err, k.syncPod(ctx, pod))
		}
	}
	if err != nil {
		k.problems = append(k.problems[max(0, len(k.problems)-9):], err)
		return
	}
	for uid, w := range maps.Clone(k.pods) { // deleted by force
		if !known[uid] && (w.current == nil || w.stop(0)) {
			delete(k.pods, uid)
		}
	}
}

func (k *Kubelet) syncPod(ctx context.Context, pod *corev1.Pod) error {
	w := k.pods[pod.UID]
	if w == nil {
		w = &podWorker{}
		k.pods[pod.UID] = w
	}
	if pod.DeletionTimestamp != nil {
		if w.current != nil && !w.stop(time.Until(pod.DeletionTimestamp.Time)) {
			return nil
		}
		return client.IgnoreNotFound(k.env.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}))
	}
	k.mu.Lock()
	program, found := k.programs[pod.Spec.Containers[0].Image]
	k.mu.Unlock()
	var err error
	switch {
	case w.current == nil && found && !time.Now().Before(w.next):
		err = k.run(ctx, pod, w, program)
	case w.current != nil && w.current.Exited():
		w.end()
	case w.current != nil && program.CrashesAsLeader:
		err = k.crash(ctx, w.current)
	}
	status := pod.Status.DeepCopy()
	k.report(ctx, pod, w, found, status)
	if equality.Semantic.DeepEqual(*status, pod.Status) {
		return err
	}
	pod.Status = *status
	return errors.Join(err, client.IgnoreNotFound(k.env.Client.Status().Update(ctx, pod)))
}

// run starts the container of a pod.
func (k *Kubelet) run(ctx context.Context, pod *corev1.Pod, w *podWorker, program Program) error {
	dir, err := os.MkdirTemp(k.env.DataDir(), pod.Name+"-")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	credential, err := k.env.credentials(ctx, kubeconfig)
	if err != nil {
		return err
	}
	from, err := k.audit.Mark(ctx)
	if err != nil {
		return err
	}
	args, environ, err := arguments(pod)
	if err != nil {
		return err
	}
	path := program.Path
	args = slices.Concat(args, k.env.local(dir, kubeconfig), k.args)
	if program.Hangs {
		path, args = "/bin/sh", append([]string{"-c", `kill -STOP $$; exec "$0" "$@"`, path}, args...)
	}
	m, err := k.env.start(dir, path, args, append(environ, "KUBECONFIG="+kubeconfig)...)
	if err != nil {
		return err
	}
	c := &Container{Process: &Process{m, credential}, Pod: pod.Name, Image: pod.Spec.Containers[0].Image, began: time.Now(), from: from}
	go func() {
		<-c.Done()
		c.ended.Store(ptr.To(time.Now()))
	}()
	w.current = c
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, c)
	return nil
}

// arguments returns the arguments and the environment of the container of a pod.
func arguments(pod *corev1.Pod) (args, environ []string, err error) {
	container := &pod.Spec.Containers[0]
	if len(container.EnvFrom) > 0 {
		return nil, nil, fmt.Errorf("pod %s: envFrom is not supported", pod.Name)
	}
	var variables []string
	for _, e := range container.Env {
		value := e.Value
		if from := e.ValueFrom; from != nil {
			if from.FieldRef == nil || from.FieldRef.FieldPath != "metadata.namespace" {
				return nil, nil, fmt.Errorf("pod %s: of the sources of %s only metadata.namespace is supported", pod.Name, e.Name)
			}
			value = pod.Namespace
		}
		environ = append(environ, e.Name+"="+value)
		variables = append(variables, "$("+e.Name+")", value)
	}
	expand := strings.NewReplacer(variables...)
	for _, arg := range container.Args {
		args = append(args, expand.Replace(arg))
	}
	return args, environ, nil
}

// crash kills a process that has acquired the Lease. Of writes across the moved position the next renewal is seen.
func (k *Kubelet) crash(ctx context.Context, c *Container) error {
	next, err := k.audit.Mark(ctx)
	if err != nil {
		return err
	}
	writes, err := k.audit.Since(ctx, c.from, sandbox.ByCredential(c.Credential), sandbox.Writes(), sandbox.ByResource("leases.coordination.k8s.io"),
		func(e sandbox.Entry) bool { return e.Code < 300 })
	if err != nil {
		return err
	}
	if c.from = next; len(writes) > 0 {
		c.Kill()
	}
	return nil
}

// end notes how the process ended.
func (w *podWorker) end() {
	ended, state := w.current.Ended(), w.current.cmd.ProcessState
	if ended.IsZero() {
		return // in a moment
	}
	w.last = &corev1.ContainerStateTerminated{
		ExitCode: int32(max(state.ExitCode(), 0) & 0xff), Reason: "Completed", StartedAt: metav1.NewTime(w.current.began), FinishedAt: metav1.NewTime(ended),
	}
	if signal := state.Sys().(syscall.WaitStatus); signal.Signaled() {
		w.last.ExitCode = 128 + int32(signal.Signal()&0x7f)
	}
	if w.last.ExitCode != 0 {
		w.last.Reason, w.last.Message = "Error", tail(w.current.log, 20)
	}
	w.next = ended.Add(min(firstDelay<<min(w.restarts, 10), mostDelay))
	w.restarts++
	w.current = nil
}

// stop ends the process, by force after a time, and reports whether it has ended.
func (w *podWorker) stop(grace time.Duration) bool {
	switch {
	case w.current.Exited():
		return true
	case grace <= 0:
		w.current.Process.Kill()
		return true
	case !w.stopped:
		w.stopped = true
		w.current.Signal(syscall.SIGTERM)
		w.current.Signal(syscall.SIGCONT) // one that hangs ends before another instruction
	}
	return false
}
