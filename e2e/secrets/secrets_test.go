package secrets_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// patience is how long a test waits for a condition.
var patience = harness.Patience

// TestRefusedOutsideSecrets: the engine refuses a value outside of a Secret before it writes
// any object. The message names file and field, but not the value. Only an object that permits
// the value explicitly gets it.
func TestRefusedOutsideSecrets(t *testing.T) {
	one := &life{namespace: "leaky", objects: "leaky", input: "leaky"}
	l := shared.with(t, one)
	value := newNeedle(newValue())
	l.give(t, one, value.value)
	l.env.Create(t, one.newPackage(l.leak(t, false)))
	c := l.env.WaitCondition(t, one.namespace, "shop", corev1alpha1.ConditionInvalid, "True")
	for _, want := range []string{"leak.yaml", "data.dsn"} {
		if !strings.Contains(c.Message, want) {
			t.Errorf("the message does not name %s: %s", want, c.Message)
		}
	}
	l.hunt(t, value)
	deployments := &corev1alpha1.ObjectDeploymentList{}
	require.NoError(t, l.env.Client.List(t.Context(), deployments, client.InNamespace(one.namespace)))
	if stored, _, err := l.stored(t.Context()); err != nil || len(stored) > 0 || len(deployments.Items) > 0 {
		t.Errorf("something was written: %d Secrets, %d deployments, error %v", len(stored), len(deployments.Items), err)
	}

	l.patch(t, one, fmt.Sprintf(`{"spec":{"image":%q}}`, l.leak(t, true)))
	l.env.WaitAvailable(t, one.namespace, "shop")
	var where []string
	for resource, objects := range l.all(t) {
		for name, text := range objects {
			if resource != "secrets" && len(value.in(text)) > 0 {
				where = append(where, resource+" "+name)
			}
		}
	}
	if len(where) != 1 || where[0] != "configmaps leaky/leak" {
		t.Errorf("the value is in %v, want it only in the ConfigMap that exposes it", where)
	}
}

// TestSensitiveValues goes through the whole life of packages with values from Secrets, with
// three packages at a time: a small one, one in slices, and a ClusterPackage. Objects that are
// readable without the right to read Secrets must not contain the values (invariant 8).
func TestSensitiveValues(t *testing.T) {
	l := shared.with(t,
		&life{namespace: "small", objects: "small", input: "small"},
		&life{namespace: "large", objects: "large", input: "large", large: true},
		&life{objects: "of-cluster", input: corev1alpha1.DefaultNamespace})
	l.push(t)
	first, second := l.values(), l.values()

	l.each(func(one *life) {
		l.give(t, one, first[one].value)
		l.env.Create(t, one.newPackage(l.image(one, "v1")))
	})
	l.available(t)
	l.holds(t, first)
	l.drift(t)
	l.holds(t, first)

	t.Log("a webhook refuses a change and repeats it")
	webhook := l.listen(t)
	l.isAsked(t)
	l.upgrade(t, "v2")
	l.report(t, `admission webhook \"gossip.example.com\" denied the request`)
	webhook.allows.Store(true)
	l.available(t)
	l.holds(t, first)

	t.Log("probes fail on a Secret, and the image is rolled back")
	l.upgrade(t, "v3")
	l.report(t, `\".data.password\" and \".data.url\" differ, password and url differ`)
	l.upgrade(t, "v4")
	l.report(t, "cannot be evaluated on this object")
	before := l.hunt(t, slices.Concat(needles(first), needles(second))...)
	l.upgrade(t, "v2")
	l.available(t)

	t.Log("the input changes")
	l.each(func(one *life) { l.give(t, one, second[one].value) })
	l.holds(t, second)
	l.available(t)
	l.forgets(t, first)

	t.Log("a pause, and drift and the loss of keys and of Secrets while no manager runs")
	l.each(func(one *life) { l.patch(t, one, `{"spec":{"paused":true}}`) })
	l.report(t, `"type":"Paused"`)
	l.manager().Stop()
	l.drift(t)
	l.losesKeys(t)
	l.losesObjects(t, l.packages[1])
	l.start()
	l.each(func(one *life) { l.patch(t, one, `{"spec":{"paused":false}}`) })
	l.holds(t, second)
	l.available(t)
	l.makesKeys(t)

	after := l.hunt(t, slices.Concat(needles(first), needles(second))...)
	t.Logf("bytes searched: %v; before the value changed: %v", after, before)
	for _, seen := range []map[string]int{before, after} {
		for _, kind := range []string{"object", "audit log", "log", "metrics", "cache", "output", "found in Secrets"} {
			if seen[kind] == 0 {
				t.Errorf("there was nothing to search: %s", kind)
			}
		}
	}
	l.remove(t)
	l.hunt(t, slices.Concat(needles(first), needles(second))...)
}

// isAsked waits until the API server asks the webhook.
func (l *lives) isAsked(t *testing.T) {
	t.Helper()
	harness.Eventually(t, patience, "the webhook to be asked", func(ctx context.Context) error {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: l.packages[0].objects, Name: "credentials"}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"tried":"true"}}}`))
		if err := l.env.Client.Patch(ctx, secret, patch, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "gossip") {
			return fmt.Errorf("the answer to a change is %w", err)
		}
		return nil
	})
}

// values gives each package a value of its own.
func (l *lives) values() map[*life]needle {
	values := map[*life]needle{}
	l.each(func(one *life) { values[one] = newNeedle(newValue()) })
	return values
}

func needles(values map[*life]needle) []needle { return slices.Collect(maps.Values(values)) }

// forgets waits until no copy of a former value is kept in any Secret.
func (l *lives) forgets(t *testing.T, values map[*life]needle) {
	t.Helper()
	harness.Eventually(t, patience, "copies of the former value to be deleted", func(ctx context.Context) error {
		list := &corev1.SecretList{}
		if err := l.env.Client.List(ctx, list); err != nil {
			return err
		}
		for _, secret := range list.Items {
			for key, content := range secret.Data {
				for _, n := range needles(values) {
					if found := n.in(content); len(found) > 0 {
						return fmt.Errorf("Secret %s/%s of type %s has it in %s as %v", secret.Namespace, secret.Name, secret.Type, key, found)
					}
				}
			}
		}
		return nil
	})
}

// losesKeys deletes the keys that values are hashed with.
func (l *lives) losesKeys(t *testing.T) {
	t.Helper()
	_, keys, err := l.stored(t.Context())
	require.NoError(t, err)
	if len(keys) != len(l.packages) {
		t.Errorf("%d keys for %d packages", len(keys), len(l.packages))
	}
	for i := range keys {
		require.NoError(t, l.env.Client.Delete(t.Context(), &keys[i]))
	}
}

// losesObjects deletes by force the Secrets with the objects of a package. The package creates them
// again, also with another key, and meanwhile no object is deleted.
func (l *lives) losesObjects(t *testing.T, one *life) {
	t.Helper()
	objects, _, err := l.stored(t.Context())
	require.NoError(t, err)
	deleted := 0
	for i := range objects {
		secret := &objects[i]
		if secret.Namespace != one.input {
			continue
		}
		require.NoError(t, l.env.Client.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		require.NoError(t, l.env.Client.Delete(t.Context(), secret))
		deleted++
	}
	if deleted == 0 {
		t.Errorf("%s had no objects in Secrets", one.objects)
	}
}

// makesKeys renders packages again: with new keys, and without a write of an
// object.
func (l *lives) makesKeys(t *testing.T) {
	t.Helper()
	versions := l.versions(t)
	l.each(func(one *life) {
		l.patch(t, one, `{"metadata":{"annotations":{"packages.package-operator.run/chunking-strategy":"EachObject"}}}`)
	})
	harness.Eventually(t, patience, "new keys", func(ctx context.Context) error {
		_, keys, err := l.stored(ctx)
		if err == nil && len(keys) != len(l.packages) {
			err = fmt.Errorf("%d keys", len(keys))
		}
		return err
	})
	l.available(t)
	require.Equal(t, versions, l.versions(t), "objects were written for another key")
}

// versions returns the resource versions of a Secret of each package.
func (l *lives) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	l.each(func(one *life) {
		secret := &corev1.Secret{}
		require.NoError(t, l.env.Client.Get(t.Context(), types.NamespacedName{Namespace: one.objects, Name: "encoded"}, secret))
		versions[one.objects] = secret.ResourceVersion
	})
	return versions
}

// remove deletes the packages and checks that none of their objects remain.
func (l *lives) remove(t *testing.T) {
	t.Helper()
	l.each(func(one *life) { require.NoError(t, l.env.Client.Delete(t.Context(), one.newPackage(""))) })
	l.each(func(one *life) { l.env.WaitGone(t, patience, one.newPackage("")) })
	harness.Eventually(t, patience, "the Secrets of the engine to be deleted", func(ctx context.Context) error {
		stored, keys, err := l.stored(ctx)
		if err == nil && len(stored)+len(keys) > 0 {
			err = fmt.Errorf("%d Secrets with objects and %d with keys are left", len(stored), len(keys))
		}
		return err
	})
	l.each(func(one *life) {
		secrets := &corev1.SecretList{}
		require.NoError(t, l.env.Client.List(t.Context(), secrets, client.InNamespace(one.objects), client.MatchingLabels{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue}))
		if len(secrets.Items) > 0 {
			t.Errorf("%s: %d Secrets are left", one.objects, len(secrets.Items))
		}
	})
}
