package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/hostile"
	"lockstep.run/lockstep/test/require"
)

// Five tenants at a time make each attack that takes memory or time, and one tenant makes a
// flood. The manager has the memory limit of config/manager. It has to survive, and must only
// change the tenants' objects. The test logs the install time of packages in another namespace,
// but does not fail because of it, since it depends on the machine.
func TestTogether(t *testing.T) {
	if !harness.Deep() {
		t.Skip("takes ten minutes and all processors: a sweep of ./task test:deep")
	}
	e := harness.Lend(t)
	m := e.StartManager(t, "--allow-local-targets", "--allow-private-sources=127.0.0.0/8")
	confine(t, m)
	watcher, err := client.NewWithWatch(e.Config(), client.Options{Scheme: e.Client.Scheme()})
	require.NoError(t, err)
	v := &victim{env: e, watcher: watcher, image: e.Push(t, "together-control:v1", renamable(5, ""))}
	v.installs(t, "warm-up", 5)
	journal := e.Journal(t)
	for _, a := range []struct {
		name    string
		tenants int
		begin   func(t *testing.T, u *tenant)
	}{
		{"packages", 5, packageBombs(t, e)},
		{"targets", 5, targetBombs},
		{"templates", 5, templateBombs},
		{"graphs", 5, func(t *testing.T, u *tenant) { u.graphs(t, 20) }},
		{"owners", 5, ownerBombs},
		{"flood", 1, flood(t, e)},
	} {
		t.Run(a.name, func(t *testing.T) { v.attacked(t, m, a.tenants, a.begin) })
	}
	changes, err := journal.Since(t.Context(), journal.From, sandbox.ByUser(harness.ManagerUser()), changing)
	require.NoError(t, err)
	elsewhere := slices.DeleteFunc(slices.Clone(changes), func(e sandbox.Entry) bool { return strings.HasPrefix(e.Object.Namespace, "together-") })
	if len(elsewhere) > 0 {
		t.Errorf("changed elsewhere:%s", harness.Lines(elsewhere))
	}
	t.Logf("%d requests changed something, %d of them elsewhere; the manager had %d MiB at most", len(changes), len(elsewhere), m.Peak(t)>>20)
}

// changing selects requests that change, or try to change, objects, except the manager's Leases,
// events and reviews.
func changing(e sandbox.Entry) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) &&
		!slices.Contains([]string{"leases", "events", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}, e.Object.Resource)
}

// victim installs packages in its own namespaces while tenants attack.
type victim struct {
	env     *harness.Env
	watcher client.WithWatch
	image   string
}

// installs installs a number of packages one after the other, each with 10 objects in 2 phases. It
// returns the times from create to Available, and for comparison the times that a plain client
// takes to create 10 objects and to see the Package in a watch.
func (v *victim) installs(t *testing.T, name string, number int) (took, raw []time.Duration) {
	t.Helper()
	namespace := "together-victim-" + name
	v.env.Namespace(t, namespace)
	for i := range number {
		began := time.Now()
		for k := range 10 {
			harness.Eventually(t, harness.Patience, "the API server", func(ctx context.Context) error {
				return client.IgnoreAlreadyExists(v.env.Client.Create(ctx, configMap(namespace, fmt.Sprintf("raw-%d-%d", i, k), "0")))
			})
		}
		creates := time.Since(began)
		pkg := harness.Package(namespace, fmt.Sprintf("control-%d", i), v.image)
		began = time.Now()
		harness.Eventually(t, harness.Patience, "the API server", func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(v.env.Client.Create(ctx, pkg))
		})
		seen := v.awaitAvailable(t, pkg)
		took, raw = append(took, time.Since(began)), append(raw, creates+seen.Sub(began))
	}
	slices.Sort(took)
	slices.Sort(raw)
	return took, raw
}

// awaitAvailable waits for the event that makes a package available, and returns the time of its
// first event. The API server can be minutes behind while it decodes the tenants' objects, and ends
// watches then.
func (v *victim) awaitAvailable(t *testing.T, pkg *corev1alpha1.Package) (seen time.Time) {
	t.Helper()
	harness.Eventually(t, 3*harness.Patience, "the package to be available", func(ctx context.Context) error {
		events, err := v.watcher.Watch(ctx, &corev1alpha1.PackageList{}, client.InNamespace(pkg.Namespace))
		if err != nil {
			return err
		}
		defer events.Stop()
		for event := range events.ResultChan() {
			is, ok := event.Object.(*corev1alpha1.Package)
			if !ok || is.Name != pkg.Name {
				continue
			}
			if seen.IsZero() {
				seen = time.Now()
			}
			if harness.HasCondition(is, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, "") == nil {
				return nil
			}
		}
		return errors.New("the watch has ended")
	})
	return seen
}

// attacked compares install times without and with attacks by tenants.
func (v *victim) attacked(t *testing.T, m *harness.Manager, tenants int, begin func(*testing.T, *tenant)) {
	t.Helper()
	name := strings.ToLower(filepath.Base(t.Name()))
	quiet, quietRaw := v.installs(t, name+"-quiet", 20)
	var (
		all       sync.WaitGroup
		attackers []*tenant
	)
	for i := range tenants {
		u := newTenant(t, v.env, fmt.Sprintf("-%d", i), "lockstep-author")
		attackers = append(attackers, u)
		all.Go(func() { begin(t, u) })
	}
	meanwhile, raw := v.installs(t, name, 40)
	all.Wait()
	for _, u := range attackers {
		u.leave(t)
	}
	if m.Exited() {
		t.Fatal("the manager has ended")
	}
	peak := m.Peak(t)
	if peak > memory {
		t.Errorf("the manager had %d MiB", peak>>20)
	}
	t.Logf("%s: packages of others: %s (quiet: %s); of a plain client: %s (quiet: %s); the manager had %d MiB at most", name,
		spread(meanwhile), spread(quiet), spread(raw), spread(quietRaw), peak>>20)
}

// spread describes sorted times.
func spread(all []time.Duration) string {
	return fmt.Sprintf("p50 %d ms, at most %d", all[len(all)/2].Milliseconds(), slices.Max(all).Milliseconds())
}

// renamable returns a package of two phases with a number of ConfigMaps each. It can be installed
// under several names.
func renamable(number int, text string) harness.Files {
	phases := []string{"first", "second"}
	files := harness.Files{"manifest.yaml": harness.Manifest("named", phases, "")}
	for i := range 2 * number {
		files[fmt.Sprintf("object-%d.yaml.gotmpl", i)] = text + fmt.Sprintf(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{.package.metadata.name}}-%d\", annotations: {package-operator.run/phase: %s}}\n", i, phases[i%2])
	}
	return files
}

// leave deletes a tenant's objects of the engine's kinds, and waits until they are removed.
func (u *tenant) leave(t *testing.T) {
	t.Helper()
	for _, kind := range []struct {
		kind client.Object
		list client.ObjectList
	}{
		{&corev1alpha1.Package{}, &corev1alpha1.PackageList{}},
		{&corev1alpha1.ObjectTemplate{}, &corev1alpha1.ObjectTemplateList{}},
		{&corev1alpha1.ObjectDeployment{}, &corev1alpha1.ObjectDeploymentList{}},
	} {
		harness.Eventually(t, harness.Patience, "the tenant's objects to be deleted", func(ctx context.Context) error {
			if err := u.env.Client.DeleteAllOf(ctx, kind.kind, client.InNamespace(u.namespace)); err != nil {
				return err
			}
			if err := u.env.Client.List(ctx, kind.list, client.InNamespace(u.namespace)); err != nil {
				return err
			}
			if n := meta.LenList(kind.list); n > 0 {
				return fmt.Errorf("%d of %T are left", n, kind.list)
			}
			return nil
		})
	}
}

// confine limits a process to the memory of config/manager. If this machine does not let a test
// do so, it logs that.
func confine(t *testing.T, m *harness.Manager) {
	t.Helper()
	group, limit := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("lockstep-%d", m.PID())), "memory.limit_in_bytes"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		group, limit = filepath.Join("/sys/fs/cgroup", filepath.Base(group)), "memory.max"
	}
	err := os.Mkdir(group, 0o755)
	for _, line := range [][2]string{{limit, strconv.Itoa(memory)}, {"cgroup.procs", strconv.Itoa(m.PID())}} {
		if err == nil {
			err = os.WriteFile(filepath.Join(group, line[0]), []byte(line[1]), 0o644)
		}
	}
	if err != nil {
		t.Logf("the manager has more memory than in a cluster: %v", err)
	}
	t.Cleanup(func() {
		m.Stop()
		_ = os.Remove(group)
	})
}

// packageBombs are packages that are as large as allowed, and larger, and many smaller ones.
func packageBombs(t *testing.T, e *harness.Env) func(*testing.T, *tenant) {
	t.Helper()
	images := map[string]string{}
	for name, objects := range map[string]int{"small": 1, "medium": 8, "large": 28, "bomb": 56} {
		images[name] = e.Push(t, "together-"+name+":v1", bombOf(objects, 900<<10, "x"))
	}
	return func(t *testing.T, u *tenant) {
		t.Helper()
		for name, number := range map[string]int{"bomb": 2, "large": 2, "medium": 4, "small": 8} {
			for i := range number {
				u.create(t, harness.Package(u.namespace, fmt.Sprintf("%s-%d", name, i), images[name]))
			}
		}
	}
}

// targetBombs are targets that send more than fits into memory.
func targetBombs(t *testing.T, u *tenant) {
	t.Helper()
	image := u.env.Push(t, u.namespace+":v1", harness.Phased("app", 1, 2))
	for i, attack := range []hostile.Attack{
		hostile.WatchBomb(1 << 30), hostile.Pages(1, 10, 60<<20), hostile.Nodes(2 << 20), hostile.Discovery(200_000), hostile.SchemaBomb(), hostile.Trickle(time.Second),
	} {
		name := fmt.Sprintf("target-%d", i)
		u.create(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}, Data: map[string][]byte{"value": hostile.New(t, attack).Kubeconfig()},
		})
		pkg := harness.Package(u.namespace, name, image)
		pkg.Annotations = map[string]string{corev1alpha1.AbandonTargetAnnotation: "true"} // or it would stay
		pkg.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: name}}
		u.create(t, pkg)
	}
}

// templateBombs are templates with large sources, and such that take their whole time.
func templateBombs(t *testing.T, u *tenant) {
	t.Helper()
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("large-%d", i))
		u.create(t, configMap(u.namespace, names[i], strings.Repeat("x", 1000<<10)))
	}
	for i := range 5 {
		u.create(t, templateOf(u.namespace, fmt.Sprintf("greedy-%d", i), "", names...))
	}
	for i := range 40 {
		u.create(t, templateOf(u.namespace, fmt.Sprintf("slow-%d", i), slow, names[i]))
	}
}

// ownerBombs are deployments with more owners than are watched.
func ownerBombs(t *testing.T, u *tenant) {
	t.Helper()
	existing := configMap(u.namespace, "owner", "0")
	u.create(t, existing)
	for i := range 20 {
		refs := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: existing.Name, UID: existing.UID}}
		for k := range 500 {
			refs = append(refs, metav1.OwnerReference{APIVersion: "v1", Kind: "PodTemplate", Name: fmt.Sprintf("p-%d-%d", i, k), UID: existing.UID + "-other"})
		}
		u.create(t, owned(u.namespace, fmt.Sprintf("bomb-%d", i), refs...))
	}
}

// flood creates a thousand packages and templates of one tenant: from one registry, with slow
// templates, and with hard dependencies.
func flood(t *testing.T, e *harness.Env) func(*testing.T, *tenant) {
	t.Helper()
	slowImage := e.Push(t, "together-slow:v1", renamable(2, slow))
	var images []string
	for i := range 50 {
		images = append(images, e.Push(t, fmt.Sprintf("together-flood-%d:v1", i), renamable(2, "")))
	}
	return func(t *testing.T, u *tenant) {
		t.Helper()
		u.graphs(t, 200)
		for i := range 500 {
			u.create(t, harness.Package(u.namespace, fmt.Sprintf("flood-%d", i), images[i%len(images)]))
		}
		for i := range 300 {
			u.create(t, harness.Package(u.namespace, fmt.Sprintf("slow-%d", i), slowImage))
		}
	}
}

// graphs creates packages with dependencies that are hard to resolve. Their versions have many
// dependencies, the namespace has a package that the resolver can change, and further
// dependencies each need an explanation.
func (u *tenant) graphs(t *testing.T, number int) {
	t.Helper()
	var needs, all []corev1alpha1.Dependency
	for k := range 20 {
		needs = append(needs, harness.On(fmt.Sprintf("d%d", k), fmt.Sprintf("leaf-%d", k), ""))
	}
	var versions []harness.Release
	for v := range 300 {
		versions = append(versions, harness.Release{Version: fmt.Sprintf("1.%d.0", v), Needs: needs})
	}
	for k := range 6 {
		name := fmt.Sprintf("wide-%d", k)
		u.env.Offer(t, u.namespace, name, versions...)
		all = append(all, harness.On(name, name, ""))
	}
	for k := range 40 {
		name := fmt.Sprintf("ghost-%d", k)
		u.env.Offer(t, u.namespace, name, harness.Release{Version: "1.0.0"})
		all = append(all, harness.On(name, name, ">=2"))
	}
	u.env.Offer(t, u.namespace, "mine", harness.Release{Version: "1.0.0"})
	u.env.Offer(t, u.namespace, "x", harness.Release{Version: "1.0.0", Needs: all})
	u.create(t, wish(u.namespace, "mine", "mine", "1.0.0", allowing))
	for k := range number {
		u.create(t, wish(u.namespace, fmt.Sprintf("x-%02d", k), "x", ""))
	}
}
