package rollout_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// formerDefinitions are the CustomResourceDefinitions of the former version.
func formerDefinitions(t *testing.T, sources string) (all []*unstructured.Unstructured) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(sources, "config", "crds", corev1alpha1.GroupName+"_*.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		crd := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(content, crd))
		all = append(all, crd)
	}
	return all
}

func apply(t *testing.T, env *harness.Env, crd *unstructured.Unstructured) error {
	t.Helper()
	//nolint:staticcheck // the typed apply of this client needs generated types
	return env.Client.Patch(t.Context(), crd.DeepCopy(), client.Apply, client.FieldOwner("config"), client.ForceOwnership)
}

// An upgrade or a rollback of the definitions can stop half-way. With either version of the
// manager, and every second definition in the other version, packages are installed, stay at
// rest without requests, and drift is corrected. The manager does not rewrite a status again
// and again if the API server drops a field of it.
func TestHalfUpgradedDefinitions(t *testing.T) {
	if !harness.Deep() {
		t.Skip("a sweep: LOCKSTEP_DEEP=1 builds the former manager")
	}
	old, sources := former(t)
	env := harness.New(t)
	for i, crd := range formerDefinitions(t, sources) {
		if i%2 == 0 {
			require.NoError(t, apply(t, env, crd))
		}
	}
	newer, err := config.Objects(config.FolderCRDs)
	require.NoError(t, err)
	for _, program := range []string{harness.Binary(t, "lockstep-manager"), old} {
		manager := env.StartManagerOf(t, program)
		name := "half-" + strings.ToLower(strconv.FormatBool(program == old))
		env.Create(t, harness.Package("default", name, env.Push(t, name+":1", harness.Phased(name, 3, 3))))
		env.WaitAvailable(t, "default", name)
		drifted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-01-001"}}
		harness.Edit(t, env, drifted, func(cm *corev1.ConfigMap) { cm.Data["value"] = "drift" })
		harness.Await(t, env, corrects, drifted, "to be corrected", func(cm *corev1.ConfigMap) error {
			if cm.Data["value"] != "v1" {
				return fmt.Errorf("it is %v", cm.Data)
			}
			return nil
		})
		env.Settle(t, "default")
		journal := env.Journal(t)
		journal.Silent(t, "default")
		manager.Stop()
	}
	// The rest of the definitions comes while the manager runs.
	env.StartManager(t)
	env.Settle(t, "default")
	journal := env.Journal(t)
	for _, crd := range newer {
		require.NoError(t, apply(t, env, crd))
	}
	requests, err := journal.Settled(t.Context(), journal.From, 5*time.Second, engine()...)
	require.NoError(t, err)
	for _, e := range requests {
		if sandbox.Writes()(e) && (e.Object.Group != corev1alpha1.GroupName || e.Object.Subresource != "status") {
			t.Errorf("it writes %s %s", e.Verb, e.RequestURI)
		}
	}
	t.Logf("all definitions are those of this version: %v", harness.Tally(requests))
}
