package dependencies_test

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// graph installs packages for several tests: app and report need orm and log, both share db; tool
// needs log.
func graph(t *testing.T, ns string) {
	t.Helper()
	offer(t, ns, "app", of("1.0.0", on("orm", "orm", ""), on("log", "log", "^1")))
	offer(t, ns, "report", of("1.0.0", on("orm", "orm", ">=1"), on("db", "db", "<2")))
	offer(t, ns, "tool", of("1.0.0", on("log", "log", "")))
	offer(t, ns, "orm", of("1.0.0", on("db", "db", "")))
	offer(t, ns, "log", of("1.0.0"), of("1.1.0"))
	offer(t, ns, "db", of("1.0.0"))
}

var tops = []string{"app", "report", "tool"}

// A restart with everything in place writes nothing.
func TestRestart(t *testing.T) {
	ns := env.TestNamespace(t)
	graph(t, ns)
	for _, name := range tops {
		env.Create(t, wish(ns, name, name, ""))
	}
	for _, name := range tops {
		awaitVersion(t, ns, name, "1.0.0")
	}
	t.Run("fleet", func(t *testing.T) {
		f := newFleet(t, "a/low", "b")
		f.install(t, "v1", rolling(1, "low"))
		f.rolledOut(t)
		env.Settle(t, f.namespace("a"), f.namespace("b"))
	})
	env.Settle(t, ns)
	manager.Stop()
	from := env.Journal(t)
	manager = env.StartManager(suite, "--pace=0.1")
	byManager, lease := sandbox.ByUser(harness.ManagerUser()), sandbox.Not(sandbox.ByResource("leases.coordination.k8s.io"))
	_, err := from.Settled(t.Context(), from.From, 3*time.Second, byManager, lease)
	require.NoError(t, err)
	writes, err := from.Since(t.Context(), from.From, byManager, sandbox.Writes(), lease)
	require.NoError(t, err)
	if len(writes) > 0 {
		t.Errorf("written:%s", harness.Lines(writes))
	}
}

// If the manager is killed at any time during an installation, the final state is the same as
// without that.
func TestKilledDuringInstallation(t *testing.T) {
	ns := env.TestNamespace(t)
	graph(t, ns)
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range tops {
		env.Create(t, wish(ns, name, name, ""))
	}
	for range rounds(2, 20) {
		kill(t, ns, random)
	}
	for _, name := range tops {
		awaitVersion(t, ns, name, "1.0.0")
	}
	list := packages(t, ns)
	if count := len(slices.DeleteFunc(list, func(p string) bool { return slices.Contains(tops, p[:len(p)-len("=1.0.0")]) })); count != 3 {
		t.Errorf("installed for three: %v", packages(t, ns))
	}
}

func rounds(usually, deep int) int {
	if harness.Deep() {
		return deep
	}
	return usually
}

// kill kills the manager after some more of its requests, and starts another.
func kill(t *testing.T, ns string, random *rand.Rand) {
	t.Helper()
	from, want := env.Journal(t), 1+random.IntN(12)
	writes := func() int {
		entries, err := from.Since(t.Context(), from.From, sandbox.ByUser(harness.ManagerUser()), sandbox.Writes(), func(e sandbox.Entry) bool { return e.Object.Namespace == ns })
		require.NoError(t, err)
		return len(entries)
	}
	for end := time.Now().Add(3 * time.Second); writes() < want && time.Now().Before(end); {
	}
	t.Logf("killed: wanted %d, writes %d", want, writes())
	manager.Kill()
	env.ClearLease(t)
	manager = env.StartManager(suite, "--pace=0.1")
}

// Packages are removed after their dependents, even if users delete them in any order and the
// manager is killed in between: no package ever lacks a dependency.
func TestKilledDuringDeletion(t *testing.T) {
	base := env.TestNamespace(t)
	for round := range rounds(1, 12) {
		ns := base + "-" + string(rune('a'+round))
		env.Namespace(t, ns)
		random := rand.New(rand.NewPCG(7, uint64(round)))
		graph(t, ns)
		for _, name := range tops {
			env.Create(t, wish(ns, name, name, "", deleting))
		}
		for _, name := range tops {
			awaitVersion(t, ns, name, "1.0.0")
		}
		needs := needsIn(t, ns)
		from := env.Journal(t)
		list := &corev1alpha1.PackageList{}
		require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(ns)))
		random.Shuffle(len(list.Items), func(i, j int) { list.Items[i], list.Items[j] = list.Items[j], list.Items[i] })
		for i := range list.Items {
			require.NoError(t, client.IgnoreNotFound(env.Client.Delete(t.Context(), &list.Items[i])))
			if i%3 == 1 {
				kill(t, ns, random)
			}
		}
		for i := range list.Items {
			env.WaitGone(t, patience, &list.Items[i])
		}
		checkOrder(t, from, ns, needs)
		left := &corev1.ConfigMapList{}
		require.NoError(t, env.Client.List(t.Context(), left, client.InNamespace(ns)))
		left.Items = slices.DeleteFunc(left.Items, func(c corev1.ConfigMap) bool { return c.Name == "kube-root-ca.crt" })
		if len(left.Items) > 0 {
			t.Errorf("left: %v", left.Items)
		}
	}
}

// needsIn returns the dependencies of each Package.
func needsIn(t *testing.T, ns string) map[string][]string {
	t.Helper()
	list := &corev1alpha1.PackageList{}
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(ns)))
	needs := map[string][]string{}
	for _, p := range list.Items {
		for _, d := range p.Status.Dependencies {
			needs[p.Name] = append(needs[p.Name], d.PackageRef.Name)
		}
	}
	return needs
}

// checkOrder fails the test if the object of a package was deleted before its dependents'. It
// includes requests without an answer, because they can take effect after the manager was killed.
func checkOrder(t *testing.T, from *harness.Journal, ns string, needs map[string][]string) {
	t.Helper()
	entries, err := from.Since(t.Context(), from.From, sandbox.ByVerb("delete"), sandbox.ByResource("configmaps"))
	require.NoError(t, err)
	order := []string{}
	for _, e := range entries {
		if e.Object.Namespace == ns && e.Code != http.StatusNotFound && e.Code != http.StatusConflict {
			order = append(slices.DeleteFunc(order, func(name string) bool { return name == e.Object.Name }), e.Object.Name)
		}
	}
	for dependent, all := range needs {
		for _, dependency := range all {
			if slices.Index(order, dependency) < slices.Index(order, dependent) {
				t.Errorf("%s went before %s, which needs it: %v", dependency, dependent, order)
			}
		}
	}
	if diff := cmp.Diff(6, len(order)); diff != "" {
		t.Errorf("deleted %v", order)
	}
}
