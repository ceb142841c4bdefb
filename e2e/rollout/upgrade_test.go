package rollout_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// configMaps returns the package's ConfigMaps of a namespace by name.
func configMaps(t *testing.T, env *harness.Env, namespace string) map[string]corev1.ConfigMap {
	t.Helper()
	list := &corev1.ConfigMapList{}
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{"package-operator.run/cache": "True"}))
	found := map[string]corev1.ConfigMap{}
	for _, cm := range list.Items {
		found[cm.Name] = cm
	}
	return found
}

// touched returns the names whose resourceVersion differs.
func touched(before, after map[string]corev1.ConfigMap) []string {
	var names []string
	for name, cm := range after {
		if was, ok := before[name]; ok && was.ResourceVersion != cm.ResourceVersion {
			names = append(names, name)
		}
	}
	return names
}

func writesOfConfigMaps(t *testing.T, audit *sandbox.Audit, since sandbox.Position) []sandbox.Entry {
	t.Helper()
	entries, err := audit.Since(t.Context(), since, sandbox.ByUser(harness.ManagerUser()), sandbox.Writes(), sandbox.ByResource("configmaps"))
	require.NoError(t, err)
	return entries
}

// An upgrade only writes changed objects, as does the rollback to the former image. Objects that
// the new revision lacks are deleted after it has succeeded.
func TestUpgradeTouchesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "upgrade")
	v1 := harness.Phased("shop", 10, 10)
	v2 := v1.Clone()
	v2["phase-04.yaml"] = strings.Replace(v2["phase-04.yaml"], `value: "v1"`, `value: "v2"`, 1)
	v3 := v2.Clone()
	v3["phase-07.yaml"] = v3["phase-07.yaml"][:strings.LastIndex(v3["phase-07.yaml"], "---\n")]
	one, two, three := env.Push(t, "shop:1", v1), env.Push(t, "shop:2", v2), env.Push(t, "shop:3", v3)
	env.Create(t, harness.Package("upgrade", "shop", one))
	env.WaitAvailable(t, "upgrade", "shop")
	first := configMaps(t, env, "upgrade")
	if len(first) != 100 {
		t.Fatalf("installed %d of 100 objects", len(first))
	}

	env.SetImage(t, "upgrade", "shop", two)
	env.WaitAvailable(t, "upgrade", "shop")
	second := configMaps(t, env, "upgrade")
	if names := touched(first, second); len(names) != 1 || names[0] != "shop-04-000" || second["shop-04-000"].Data["value"] != "v2" {
		t.Errorf("the upgrade touched %v, want shop-04-000 only", names)
	}

	env.SetImage(t, "upgrade", "shop", three)
	env.WaitAvailable(t, "upgrade", "shop")
	harness.Eventually(t, harness.Patience, "the dropped object to be deleted", func(context.Context) error {
		if n := len(configMaps(t, env, "upgrade")); n != 99 {
			return fmt.Errorf("%d objects", n)
		}
		return nil
	})
	third := configMaps(t, env, "upgrade")
	if names := touched(second, third); len(names) != 0 {
		t.Errorf("dropping one object touched %v", names)
	}

	env.SetImage(t, "upgrade", "shop", one)
	env.WaitAvailable(t, "upgrade", "shop")
	back := configMaps(t, env, "upgrade")
	if names := touched(third, back); len(names) != 1 || back["shop-04-000"].Data["value"] != "v1" || len(back) != 100 {
		t.Errorf("going back touched %v and left %d objects", names, len(back))
	}
}

// With a raised spec.version the unchanged objects keep their resourceVersion
// until the rollout has succeeded and is reported; then each gets the new label.
func TestRaisedVersionFollowsTheRollout(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "versions")
	release := func(version, value string) harness.Files {
		files := harness.Phased("shop", 5, 4)
		files["manifest.yaml"] += "  version: " + version + "\n"
		files["phase-04.yaml"] = strings.Replace(files["phase-04.yaml"], `value: "v1"`, `value: "`+value+`"`, 1)
		return files
	}
	one, two := env.Push(t, "versions:1", release("1.0.0", "v1")), env.Push(t, "versions:2", release("1.1.0+build.7", "v2"))
	env.Create(t, harness.Package("versions", "shop", one))
	env.WaitAvailable(t, "versions", "shop")
	first := configMaps(t, env, "versions")
	for name, cm := range first {
		if cm.Labels["package-operator.run/version"] != "1.0.0" || cm.Labels["package-operator.run/package"] != "shop" || cm.Labels["package-operator.run/instance"] != "shop" {
			t.Fatalf("labels of %s are %v", name, cm.Labels)
		}
	}
	audit, err := env.Audit()
	require.NoError(t, err)
	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)

	env.SetImage(t, "versions", "shop", two)
	env.WaitAvailable(t, "versions", "shop")
	harness.Eventually(t, harness.Patience, "every object to carry the new version", func(context.Context) error {
		for name, cm := range configMaps(t, env, "versions") {
			if cm.Labels["package-operator.run/version"] != "1.1.0_build.7" {
				return fmt.Errorf("%s has %v", name, cm.Labels)
			}
		}
		return nil
	})
	var writes []string
	harness.Eventually(t, harness.Patience, "the last write to be logged", func(context.Context) error {
		writes = nil
		for _, e := range writesOfConfigMaps(t, audit, mark) {
			if e.Object.Namespace == "versions" {
				writes = append(writes, e.Object.Name)
			}
		}
		if len(writes) < 21 {
			return fmt.Errorf("so far %v", writes)
		}
		return nil
	})
	// Before the first change of an object that a POST created, its managedFields are patched.
	if len(writes) != 21 || writes[0] != "shop-04-000" || writes[1] != "shop-04-000" {
		t.Errorf("writes were %v, want the changed object first, twice, and each of the 19 others once", writes)
	}
	statuses, err := audit.Since(t.Context(), mark, sandbox.ByUser(harness.ManagerUser()), sandbox.ByResource("objectdeployments.package-operator.run"), ofStatus("versions"))
	require.NoError(t, err)
	labels, err := audit.Since(t.Context(), mark, sandbox.ByUser(harness.ManagerUser()), sandbox.Writes(), sandbox.ByResource("configmaps"),
		func(e sandbox.Entry) bool { return e.Object.Namespace == "versions" && e.Object.Name != "shop-04-000" })
	require.NoError(t, err)
	if len(statuses) == 0 || len(labels) == 0 || labels[0].Received.Before(statuses[len(statuses)-1].Done) {
		t.Errorf("labels were written before it was reported that the revision is rolled out:\n%+v\n%+v", statuses, labels)
	}
}

// ofStatus selects writes of statuses in a namespace.
func ofStatus(namespace string) sandbox.Filter {
	return func(e sandbox.Entry) bool { return e.Object.Namespace == namespace && e.Object.Subresource == "status" }
}
