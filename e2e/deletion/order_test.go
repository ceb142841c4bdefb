package deletion_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// Deleting a package with 10 phases leaves no objects, and proceeds in reverse (invariant 6):
// no object of phase k is deleted before the last one of phase k+1 was removed. With
// LOCKSTEP_DEEP there are 1,000 objects.
func TestDeletePhasesInReverse(t *testing.T) {
	t.Parallel()
	objects := 20
	if harness.Deep() {
		objects = 100
	}
	env := harness.Shared(t)
	env.Namespace(t, "order")
	env.Create(t, harness.Package("order", "large", env.Push(t, "large:1", harness.Phased("large", 10, objects))))
	env.WaitAvailable(t, "order", "large")
	audit, err := env.Audit()
	require.NoError(t, err)
	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)

	pkg := harness.Package("order", "large", "")
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, harness.Patience, pkg)
	nothingLeft(t, env, "order")

	entries, err := audit.Since(t.Context(), mark, sandbox.ByUser(harness.ManagerUser()))
	require.NoError(t, err)
	firstBegin, lastEnd, deleted := map[string]time.Time{}, map[string]time.Time{}, sets.Set[string]{}
	for _, e := range entries {
		if e.Verb != "delete" || e.Object.Resource != "configmaps" || e.Object.Namespace != "order" {
			continue
		}
		if e.Code < 300 {
			deleted.Insert(e.Object.Name)
		}
		phase := strings.Split(e.Object.Name, "-")[1]
		if at, ok := firstBegin[phase]; !ok || e.Received.Before(at) {
			firstBegin[phase] = e.Received
		}
		if e.Done.After(lastEnd[phase]) {
			lastEnd[phase] = e.Done
		}
	}
	for p := range 9 {
		this, next := fmt.Sprintf("%02d", p), fmt.Sprintf("%02d", p+1)
		if firstBegin[this].Before(lastEnd[next]) {
			t.Errorf("deletion of phase %s started at %s, before phase %s was removed at %s", this, firstBegin[this], next, lastEnd[next])
		}
	}
	if deleted.Len() != 10*objects {
		t.Errorf("%d objects were deleted by the manager, want %d", deleted.Len(), 10*objects)
	}
}

// nothingLeft checks that the namespace contains no objects of the engine.
func nothingLeft(t *testing.T, env *harness.Env, namespace string) {
	t.Helper()
	lists := map[string]client.ObjectList{
		"ConfigMap": &corev1.ConfigMapList{}, "ObjectDeployment": &corev1alpha1.ObjectDeploymentList{},
		"ObjectSet": &corev1alpha1.ObjectSetList{}, "ObjectSlice": &corev1alpha1.ObjectSliceList{},
	}
	for kind, list := range lists {
		harness.Eventually(t, harness.Patience, "no "+kind+" to be left in "+namespace, func(ctx ctxType) error {
			if err := env.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return err
			}
			if n := countOurs(list); n > 0 {
				return fmt.Errorf("%d are left", n)
			}
			return nil
		})
	}
}

func countOurs(list client.ObjectList) int {
	switch list := list.(type) {
	case *corev1.ConfigMapList:
		return len(slices.DeleteFunc(slices.Clone(list.Items), func(cm corev1.ConfigMap) bool { return cm.Name == "kube-root-ca.crt" }))
	case *corev1alpha1.ObjectDeploymentList:
		return len(list.Items)
	case *corev1alpha1.ObjectSetList:
		return len(list.Items)
	case *corev1alpha1.ObjectSliceList:
		return len(list.Items)
	}
	return 0
}

func controlled(cm *corev1.ConfigMap) bool { return metav1.GetControllerOf(cm) != nil }
