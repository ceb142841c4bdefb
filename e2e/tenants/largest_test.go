package tenants_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A tenant creates, changes and deletes 200 objects of each kind that it can write and that the
// manager watches, as large as the API server accepts. The manager stays below the memory limit of
// config/manager, also when it starts with them. Another namespace installs meanwhile, and again
// after that: the times are logged along with a plain client's, since the API server is busy for
// both.
func TestLargestObjects(t *testing.T) {
	if !harness.Deep() {
		t.Skip("takes a GiB of etcd and many minutes: a sweep of ./task test:deep")
	}
	const number = 200
	e := harness.Lend(t)
	start := func() *harness.Manager {
		m := e.StartManager(t)
		confine(t, m)
		return m
	}
	m := start()
	watcher, err := client.NewWithWatch(e.Config(), client.Options{Scheme: e.Client.Scheme()})
	require.NoError(t, err)
	v := &victim{env: e, watcher: watcher, image: e.Push(t, "largest-control:v1", renamable(5, ""))}
	v.installs(t, "warm-up", 5)
	survives := func(t *testing.T) {
		t.Helper()
		if m.Exited() {
			t.Fatalf("the manager has ended: %s", m.Log())
		}
		if peak := m.Peak(t); peak > memory {
			t.Errorf("the manager had %d MiB", peak>>20)
		}
	}

	// A probe reads whole ConfigMaps and Secrets, in the tenant's own namespace.
	probing := bombOf(1, 100, "x")
	probing["manifest.yaml"] += `  availabilityProbes:
  - probes: [{cel: {rule: "self != {}", message: never}}]
    selector: {kind: {kind: ConfigMap}}
  - probes: [{cel: {rule: "self != {}", message: never}}]
    selector: {kind: {kind: Secret}}
`
	probed := e.Push(t, "largest-probing:v1", probing)
	text := strings.Repeat("a", 1<<20)
	labelled := func(meta metav1.ObjectMeta) metav1.ObjectMeta {
		meta.Labels = map[string]string{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue}
		return meta
	}
	annotated := func(meta metav1.ObjectMeta) metav1.ObjectMeta {
		meta.Annotations = map[string]string{"evil.example/a": text[:250<<10]}
		return meta
	}
	for kind, largest := range map[string]func(metav1.ObjectMeta) client.Object{
		"packages": func(meta metav1.ObjectMeta) client.Object {
			config := &runtime.RawExtension{Raw: []byte(`{"a":"` + text + `"}`)}
			return &corev1alpha1.Package{ObjectMeta: annotated(meta), Spec: corev1alpha1.PackageSpec{Image: "registry.invalid/none:v1", Config: config}}
		},
		"repositories": func(meta metav1.ObjectMeta) client.Object {
			inline := &corev1alpha1.RepositoryInlineSource{Files: map[string]string{"packages/large.yaml": text}}
			return &corev1alpha1.PackageRepository{ObjectMeta: annotated(meta), Spec: corev1alpha1.PackageRepositorySpec{
				Source: corev1alpha1.RepositorySource{Inline: inline},
			}}
		},
		"configmaps": func(meta metav1.ObjectMeta) client.Object {
			return &corev1.ConfigMap{ObjectMeta: labelled(annotated(meta)), Data: map[string]string{"a": text[:750<<10]}}
		},
		"secrets": func(meta metav1.ObjectMeta) client.Object {
			return &corev1.Secret{ObjectMeta: labelled(annotated(meta)), Data: map[string][]byte{"a": []byte(text[:750<<10])}}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			u := newTenant(t, e, "")
			u.create(t, harness.Package(u.namespace, "probing", probed))
			quiet, quietRaw := v.installs(t, kind+"-quiet", 10)
			objects := make([]client.Object, number)
			for i := range objects {
				objects[i] = largest(metav1.ObjectMeta{Namespace: u.namespace, Name: fmt.Sprintf("large-%d", i)})
			}
			for _, step := range []struct {
				verb string
				do   func(client.Object) error
			}{
				{"create", func(obj client.Object) error { return client.IgnoreAlreadyExists(u.Create(t.Context(), obj)) }},
				{"patch", func(obj client.Object) error {
					patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{"changed": "true"}}})
					require.NoError(t, err)
					return u.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, patch))
				}},
				{"restart", nil},
				{"delete", func(obj client.Object) error { return client.IgnoreNotFound(u.Delete(t.Context(), obj)) }},
			} {
				began := time.Now()
				var all sync.WaitGroup
				if step.do == nil {
					m.Stop()
					m = start()
				} else {
					all.Go(func() { inParallel(t, objects, step.do) })
				}
				meanwhile, raw := v.installs(t, kind+"-"+step.verb, 5)
				all.Wait()
				lasted := time.Since(began).Round(time.Second)
				after, rawAfter := v.installs(t, kind+"-after-"+step.verb, 5)
				t.Logf("%s of %d %s in %s: packages of others %s, after that %s (quiet %s), a plain client %s, after that %s (quiet %s); the manager had %d MiB at most",
					step.verb, number, kind, lasted, spread(meanwhile), spread(after), spread(quiet), spread(raw), spread(rawAfter), spread(quietRaw), m.Peak(t)>>20)
				survives(t)
			}
		})
	}
}

// inParallel calls a function for all objects, four at a time.
func inParallel(t *testing.T, objects []client.Object, do func(client.Object) error) {
	t.Helper()
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := worker; i < len(objects); i += 4 {
				harness.Eventually(t, harness.Patience, "the tenant's request", func(context.Context) error { return do(objects[i]) })
			}
		})
	}
	all.Wait()
}
