package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// Versions of the engine that a kubelet has the images of, but for the last one.
const (
	formerVersion  = "v0.0.1"
	presentVersion = "v0.0.2"
	crashes        = "v0.0.3" // as soon as it leads
	hangs          = "v0.0.4" // before its first request
	absent         = "v0.0.5"
)

// How long the cluster may be without a leader: after an orderly end, which releases the Lease, for a few retries, and after a kill for
// the duration of the Lease, a retry and the start of a process.
const (
	afterEnd  = 10 * time.Second
	afterKill = 45 * time.Second
)

// ways are switches between versions of the manager's Deployment, whose pods a kubelet runs.
type ways struct {
	*switches
	kubelet *harness.Kubelet
	// to begins a rollout of a version, and undo is the one command back to the former version.
	to, undo func(version string)
}

// newWays starts a cluster with the former version, installed by YAML.
func newWays(t *testing.T) *ways {
	t.Helper()
	if !harness.Deep() {
		t.Skip("a sweep: LOCKSTEP_DEEP=1 builds the former manager")
	}
	old, _ := former(t)
	present := harness.Binary(t, "lockstep-manager")
	env := harness.New(t, harness.WithKubelet())
	w := &ways{switches: newSwitches(t, env), kubelet: env.StartKubelet(t, reach...)}
	w.kubelet.Release(harness.EngineImage(formerVersion), harness.Program{Path: old})
	w.kubelet.Release(harness.EngineImage(presentVersion), harness.Program{Path: present})
	w.kubelet.Release(harness.EngineImage(crashes), harness.Program{Path: present, CrashesAsLeader: true})
	w.kubelet.Release(harness.EngineImage(hangs), harness.Program{Path: present, Hangs: true})
	w.to = w.apply
	w.undo = w.apply
	w.apply(formerVersion)
	w.deployed(formerVersion)
	w.begin() // something leads
	return w
}

// apply applies the YAML of a version.
func (w *ways) apply(version string) {
	w.Helper()
	var document strings.Builder
	for _, o := range harness.EngineObjects(w.T, version) {
		text, err := yaml.Marshal(o.Object)
		require.NoError(w.T, err)
		fmt.Fprintf(&document, "---\n%s", text)
	}
	file := filepath.Join(w.TempDir(), "lockstep-"+version+".yaml")
	require.NoError(w.T, os.WriteFile(file, []byte(document.String()), 0o600))
	_, err := w.env.Kubectl(w.Context(), "apply", "--server-side", "--force-conflicts", "-f", file)
	require.NoError(w.T, err)
}

// typed runs a command as the administrator types it, and logs what it prints.
func (w *ways) typed(program string, args ...string) string {
	w.Helper()
	command := exec.CommandContext(w.Context(), program, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.env.Kubeconfig())
	out, err := command.CombinedOutput()
	w.Logf("$ %s %s\n%s", filepath.Base(program), strings.Join(args, " "), out)
	if err != nil {
		w.Errorf("%s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// deployed waits until all pods of the Deployment are of a version.
func (w *ways) deployed(version string) {
	w.Helper()
	harness.Await(w.T, w.env, harness.Patience, harness.EngineDeployment(), "of "+version, func(d *appsv1.Deployment) error {
		s, want := d.Status, ptr.Deref(d.Spec.Replicas, 1)
		if image := d.Spec.Template.Spec.Containers[0].Image; image != harness.EngineImage(version) || s.ObservedGeneration != d.Generation ||
			s.UpdatedReplicas != want || s.Replicas != want || s.AvailableReplicas != want {
			return fmt.Errorf("of %s: %+v", image, s)
		}
		return nil
	})
}

// container returns the process with a credential, or nil.
func (w *ways) container(credential string) *harness.Container {
	all := w.kubelet.Containers()
	if i := slices.IndexFunc(all, func(c *harness.Container) bool { return c.Credential == credential }); i >= 0 {
		return all[i]
	}
	return nil
}

// holder returns the process that wrote the Lease last since a mark.
func (w *ways) holder(mark sandbox.Position) *harness.Container {
	w.Helper()
	var c *harness.Container
	harness.Eventually(w.T, harness.Patience, "a write of the Lease", func(context.Context) error {
		if leases := w.leases(mark); len(leases) > 0 {
			c = w.container(leases[len(leases)-1].Credential)
			return nil
		}
		return errors.New("there is none")
	})
	return c
}

// led waits until a running process of a version leads.
func (w *ways) led(mark sandbox.Position, version string) {
	w.Helper()
	harness.Eventually(w.T, harness.Patience, version+" to lead", func(context.Context) error {
		if c := w.holder(mark); c.Image != harness.EngineImage(version) || c.Exited() {
			return fmt.Errorf("the last one was %s of %s", c.Pod, c.Image)
		}
		return nil
	})
}

// gap is a time without a leader.
type gap struct {
	from, to time.Time
	// killed is set where the former leader was.
	killed bool
}

func (g gap) most() time.Duration {
	if g.killed {
		return afterKill
	}
	return afterEnd
}

// gaps returns the times without a leader since a mark: from the end of a leader, or its release of the Lease, until another one has it.
func (w *ways) gaps(mark sandbox.Position, before string) (all []gap) {
	w.Helper()
	leases := w.leases(mark)
	last := time.Time{}
	for i := range leases {
		e := &leases[i]
		if e.Credential != before {
			from := last
			c := w.container(before)
			if c != nil && c.Crashed() {
				from = c.Ended()
			}
			if from.IsZero() || from.After(e.Done) {
				from = e.Done
			}
			all = append(all, gap{from, e.Done, c != nil && c.Killed()})
		}
		before, last = e.Credential, e.Done
	}
	return all
}

// judge checks all writes of a switch, and drift in it.
func (w *ways) judge(when string, mark sandbox.Position, before, drifted string, planted time.Time) {
	w.Helper()
	at := w.corrected(drifted, mark)
	w.rest(when, mark, drifted, before)
	w.asBefore()
	took, most, sum := at.Sub(planted), time.Duration(0), time.Duration(0)
	for _, g := range w.gaps(mark, before) {
		d := g.to.Sub(g.from)
		if w.without = append(w.without, d); d > g.most() {
			w.Errorf("%s: %s without a leader, of which %s are allowed; the former one was killed: %t", when, d, g.most(), g.killed)
		}
		most, sum = max(most, d), sum+d
		from, to := g.from, g.to
		if from.Before(planted) {
			from = planted
		}
		if to.After(at) {
			to = at
		}
		took -= max(to.Sub(from), 0)
	}
	took = w.lasted(when, drifted, took)
	w.Logf("%s: %.1f s without a leader, at most %.1f s at a time; drift corrected after %.1f s with one", when, sum.Seconds(), most.Seconds(), took.Seconds())
}

// begin marks the log, and returns which process leads.
func (w *ways) begin() (sandbox.Position, *harness.Container) {
	w.Helper()
	mark, err := w.audit.Mark(w.Context())
	require.NoError(w.T, err)
	return mark, w.holder(mark)
}

// first waits for the first process of a version.
func (w *ways) first(version string, known int) *harness.Container {
	w.Helper()
	var c *harness.Container
	harness.Eventually(w.T, harness.Patience, "a process of "+version, func(context.Context) error {
		for _, c = range w.kubelet.Containers()[known:] {
			if c.Image == harness.EngineImage(version) && c.Credential != "" {
				return nil
			}
		}
		return errors.New("there is none")
	})
	return c
}

// round rolls a version out while the leader or a process of the new version is killed.
func (w *ways) round(i int, version string) {
	w.Helper()
	mark, leader := w.begin()
	known := len(w.kubelet.Containers())
	w.to(version)
	next := w.first(version, known)
	n := w.random.IntN(120)
	w.requested(mark, next.Process, n)
	who := w.kill(next, w.holder(mark))
	drifted, planted := w.drift()
	w.deployed(version)
	w.led(mark, version)
	w.judge(fmt.Sprintf("switch %d, to %s: %s is killed after %d requests of the next", i, version, who, n), mark, leader.Credential, drifted, planted)
}

// kill kills one of two processes, the other one where the rolling update has ended the first, and returns which.
func (w *ways) kill(next, leader *harness.Container) string {
	w.Helper()
	order := []*harness.Container{next, leader}
	w.random.Shuffle(2, func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, victim := range order {
		if !victim.Kill() {
			continue
		}
		if w.killed++; victim == leader {
			return "the leader"
		}
		return "a process of the new version"
	}
	return "none"
}

// broken rolls out a version that does not work, waits until that shows, and goes back by one command: the former version leads, and
// does not roll the newer one out again. Where it remains, it has led until then.
func (w *ways) broken(what, version string, remains bool, shown func(sandbox.Position)) {
	w.Helper()
	mark, leader := w.begin()
	w.to(version)
	shown(mark)
	drifted, planted := w.drift()
	w.show(what)
	if remains {
		w.remains(mark, leader.Credential)
	}
	w.undo(presentVersion)
	w.deployed(presentVersion)
	w.led(mark, presentVersion)
	generation := w.generation()
	w.judge(what, mark, leader.Credential, drifted, planted)
	if after := w.generation(); after != generation {
		w.Errorf("%s: the Deployment was changed after the undo: generation %d, then %d", what, generation, after)
	}
	w.deployed(presentVersion)
}

func (w *ways) generation() int64 {
	w.Helper()
	d := harness.EngineDeployment()
	require.NoError(w.T, w.env.Client.Get(w.Context(), client.ObjectKeyFromObject(d), d))
	return d.Generation
}

// show logs what an administrator sees.
func (w *ways) show(what string) {
	w.Helper()
	d := harness.EngineDeployment()
	require.NoError(w.T, w.env.Client.Get(w.Context(), client.ObjectKeyFromObject(d), d))
	for _, c := range d.Status.Conditions {
		w.Logf("%s: Deployment %s=%s %s", what, c.Type, c.Status, c.Message)
	}
}

// crashed waits until processes of the crashing version have led and ended.
func (w *ways) crashed(mark sandbox.Position) {
	w.Helper()
	harness.Eventually(w.T, harness.Patience, "three crashes as the leader", func(context.Context) error {
		led := map[string]bool{}
		for _, e := range w.leases(mark) {
			if c := w.container(e.Credential); c != nil && c.Image == harness.EngineImage(crashes) && c.Crashed() {
				led[e.Credential] = true
			}
		}
		if len(led) < 3 {
			return fmt.Errorf("%d so far", len(led))
		}
		return nil
	})
}

// awaitPod waits for a pod of a version with a state of its container.
func (w *ways) awaitPod(version string, is func(corev1.ContainerStatus) bool) {
	w.Helper()
	harness.Eventually(w.T, harness.Patience, "a pod of "+version, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := w.env.Client.List(ctx, pods, client.InNamespace(corev1alpha1.DefaultNamespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			for _, s := range pods.Items[i].Status.ContainerStatuses {
				if s.Image == harness.EngineImage(version) && is(s) {
					return nil
				}
			}
		}
		return errors.New("there is none in this state")
	})
}

// remains lets two renewals of the Lease pass, and checks that no other process has led since a mark, and that all replicas are available.
func (w *ways) remains(mark sandbox.Position, leader string) {
	w.Helper()
	now, err := w.audit.Mark(w.Context())
	require.NoError(w.T, err)
	harness.Eventually(w.T, harness.Patience, "two renewals of the Lease", func(context.Context) error {
		if n := len(w.leases(now)); n < 2 {
			return fmt.Errorf("%d so far", n)
		}
		return nil
	})
	harness.Await(w.T, w.env, harness.Patience, harness.EngineDeployment(), "to be available", func(d *appsv1.Deployment) error {
		if d.Status.AvailableReplicas < ptr.Deref(d.Spec.Replicas, 1) {
			return fmt.Errorf("%+v", d.Status)
		}
		return nil
	})
	for _, e := range w.leases(mark) {
		if e.Credential != leader {
			w.Errorf("another process leads: %+v", w.container(e.Credential))
			return
		}
	}
}

// all rolls out versions under kills, and those that do not work.
func (w *ways) all() {
	w.install()
	for i := range 3 {
		w.round(i+1, []string{presentVersion, formerVersion}[i%2])
	}
	w.broken("a version that crashes as the leader", crashes, false, w.crashed)
	w.broken("an image that cannot be pulled", absent, true, func(sandbox.Position) {
		w.awaitPod(absent, func(s corev1.ContainerStatus) bool {
			return s.State.Waiting != nil && s.State.Waiting.Reason == "ImagePullBackOff"
		})
	})
	w.broken("a version that never becomes ready", hangs, true, func(sandbox.Position) {
		w.awaitPod(hangs, func(s corev1.ContainerStatus) bool { return s.State.Running != nil && !s.Ready })
	})
	w.summary(fmt.Sprintf("%d packages at rest", rested))
}

// The switch by one YAML that is applied.
func TestSwitchByYAML(t *testing.T) { newWays(t).all() }

// The switch by Helm.
func TestSwitchByHelm(t *testing.T) {
	w := newWays(t)
	helm := harness.Helm(t)
	for _, name := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	w.to = func(version string) {
		w.typed(helm, "upgrade", "--install", "lockstep", "../../config/chart", "--namespace", corev1alpha1.DefaultNamespace, "--take-ownership", "--force-conflicts",
			"--set", "manager.image.tag="+version+",manager.image.digest="+harness.EngineDigest(version))
	}
	w.undo = func(string) { w.typed(helm, "rollback", "lockstep", "--namespace", corev1alpha1.DefaultNamespace) }
	w.to(formerVersion)
	w.deployed(formerVersion)
	w.all()
}
