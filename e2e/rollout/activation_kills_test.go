package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// Upgrades under both policies, during which the manager is killed after every number of writes: no
// content of a revision is written before that is active, none comes back after that of a later
// one, which a second writer would do, and nothing is deleted.
func TestActivationWithKills(t *testing.T) {
	t.Parallel()
	env := harness.Lend(t)
	k := &killer{t: t, env: env, manager: env.StartManager(t)}
	revisions, rounds := 2, 1
	if harness.Deep() {
		revisions, rounds = 5, 6
	}
	kills := 0
	for round := range rounds {
		k.namespace = fmt.Sprintf("activation-kills-%d", round)
		env.Namespace(t, k.namespace)
		seen := record(t, env, k.namespace)
		var images []string
		for n := range revisions {
			tag := fmt.Sprintf("%s:%d", k.namespace, n+1)
			images = append(images, env.Push(t, tag, valued("kills", fmt.Sprintf("v%d", n+1), 2, 2)))
		}
		pkg := harness.Package(k.namespace, "shop", images[0])
		pkg.Spec.RevisionActivationPolicy = corev1alpha1.RevisionActivationManual
		env.Create(t, pkg)
		for n := range revisions {
			number := int64(n + 1)
			if n > 0 {
				env.SetImage(t, k.namespace, "shop", images[n])
			}
			kills += k.after(1 + (round+n)%6)
			waiting := waitRevision(t, env, k.namespace, "shop", number-1, corev1alpha1.ReasonAwaitingActivation)
			if waiting.Status.WaitingRevision != setOf(t, env, k.namespace, number).Name {
				t.Errorf("%s waits, not revision %d", waiting.Status.WaitingRevision, number)
			}
			if n%2 == 1 { // Automatic from here on, for this revision
				harness.Edit(t, env, waiting, func(p *corev1alpha1.Package) { p.Spec.RevisionActivationPolicy = "" })
			} else {
				activate(t, env, k.namespace, number)
			}
			kills += k.after(1 + (2*round+3*n)%10)
			p := waitRevision(t, env, k.namespace, "shop", number, corev1alpha1.ReasonIdle)
			harness.Edit(t, env, p, func(p *corev1alpha1.Package) { p.Spec.RevisionActivationPolicy = corev1alpha1.RevisionActivationManual })
		}
		// Back to the first one, from history.
		waitArchived(t, env, k.namespace, 1)
		mark := seen.mark(t, env, k.namespace)
		activate(t, env, k.namespace, 1)
		kills += k.after(1 + round)
		waitRevision(t, env, k.namespace, "shop", int64(revisions+1), corev1alpha1.ReasonAwaitingActivation)
		seen.check(t, mark)
		if now := values(t, env, k.namespace); !slices.Equal(now, []string{"v1"}) {
			t.Errorf("values are %v in the end", now)
		}
	}
	t.Logf("%d kills", kills)
}

// killer kills the manager and starts another one.
type killer struct {
	t         *testing.T
	env       *harness.Env
	manager   *harness.Manager
	namespace string
	from      sandbox.Position
}

// after kills the manager once it has made so many writes since the last time, or no more for a
// while.
func (k *killer) after(writes int) int {
	k.t.Helper()
	audit, err := k.env.Audit()
	if err != nil {
		k.t.Fatal(err)
	}
	made := func() int {
		entries, err := audit.Since(k.t.Context(), k.from, sandbox.ByUser(harness.ManagerUser()), sandbox.Writes(),
			func(e sandbox.Entry) bool { return e.Object.Namespace == k.namespace })
		if err != nil {
			k.t.Fatal(err)
		}
		return len(entries)
	}
	for end := time.Now().Add(2 * time.Second); made() < writes && time.Now().Before(end); {
	}
	k.manager.Kill()
	if k.from, err = audit.Mark(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	k.env.ClearLease(k.t)
	k.manager = k.env.StartManager(k.t)
	return 1
}

// handovers are the observed changes of a namespace, in the order of its resource versions.
type handovers struct {
	mu      sync.Mutex
	active  map[string]int64 // since when sets of a version are active
	written []written
}

type written struct {
	version     int64
	name, value string
	gone        bool
}

func record(t *testing.T, env *harness.Env, namespace string) *handovers {
	t.Helper()
	h := &handovers{active: map[string]int64{}}
	events := []<-chan watch.Event{
		env.Watch(t, &corev1alpha1.ObjectSetList{}, client.InNamespace(namespace)), env.Watch(t, &corev1.ConfigMapList{}, client.InNamespace(namespace)),
	}
	for _, channel := range events {
		go func() {
			for e := range channel {
				h.note(e)
			}
		}()
	}
	return h
}

func (h *handovers) note(e watch.Event) {
	object, err := meta.Accessor(e.Object)
	if err != nil {
		return
	}
	version, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch o := e.Object.(type) {
	case *corev1alpha1.ObjectSet:
		value := "v" + o.Labels[corev1alpha1.PackageVersionLabel][:1]
		if _, known := h.active[value]; !known && o.Spec.LifecycleState == corev1alpha1.ObjectSetLifecycleStateActive {
			h.active[value] = version
		}
	case *corev1.ConfigMap:
		if o.Data["value"] != "" {
			h.written = append(h.written, written{version, o.Name, o.Data["value"], e.Type == watch.Deleted})
		}
	}
}

// mark returns how much was written so far, once the watch has shown all of it.
func (h *handovers) mark(t *testing.T, env *harness.Env, namespace string) (n int) {
	t.Helper()
	live := configMaps(t, env, namespace)
	harness.Eventually(t, harness.Patience, "the watch to show what was written", func(context.Context) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		last := map[string]int64{}
		for _, w := range h.written {
			last[w.name] = w.version
		}
		for name, cm := range live {
			if version, err := strconv.ParseInt(cm.ResourceVersion, 10, 64); err != nil || last[name] < version {
				return fmt.Errorf("of %s it has shown version %d, not %s", name, last[name], cm.ResourceVersion)
			}
		}
		n = len(h.written)
		return nil
	})
	return n
}

// check judges the writes; those after the mark go back to the first revision.
func (h *handovers) check(t *testing.T, back int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	last := map[string]string{}
	if len(h.written) == 0 {
		t.Error("nothing was seen to be written")
	}
	for i, w := range h.written {
		since, active := h.active[w.value]
		switch before := last[w.name]; {
		case w.gone:
			t.Errorf("%s was deleted", w.name)
		case !active || w.version < since:
			t.Errorf("%s has %s at %d, and its revision is active since %d", w.name, w.value, w.version, since)
		case w.value < before && (i < back || w.value != "v1"), w.value > before && i >= back:
			t.Errorf("%s went from %s to %s", w.name, before, w.value)
		}
		last[w.name] = w.value
	}
}
