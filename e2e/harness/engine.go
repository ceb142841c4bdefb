package harness

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/test/require"
)

// EngineRepository is the repository of the manager's image.
const EngineRepository = "lockstep.run/lockstep-manager"

// EngineImage is the manager's image of a version, as YAML and chart name it.
func EngineImage(version string) string {
	return EngineRepository + ":" + version + "@" + EngineDigest(version)
}

// EngineDigest is the digest of the manager's image of a version.
func EngineDigest(version string) string {
	return "sha256:" + strings.Repeat(version[len(version)-1:], 64)
}

// EngineObjects are those of config, with the manager's image of a version.
func EngineObjects(tb testing.TB, version string) []*unstructured.Unstructured {
	tb.Helper()
	all, err := config.Objects(config.FolderNamespace, config.FolderCRDs, config.FolderRBAC, config.FolderAdmission, config.FolderFlowControl, config.FolderManager)
	require.NoError(tb, err)
	for _, o := range all {
		if containers, found, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers"); found {
			containers[0].(map[string]any)["image"] = EngineImage(version)
			require.NoError(tb, unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"))
		}
	}
	return all
}

// EngineDeployment is the manager's.
func EngineDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: config.ServiceAccount}}
}
