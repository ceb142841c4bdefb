package environment

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func contentOf(obj metav1.Object) map[string]any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object
	}
	return nil
}

// versionOf returns the version of the last completed update of OpenShift, or the desired version
// before the first update is complete.
func versionOf(clusterVersion metav1.Object) string {
	content := contentOf(clusterVersion)
	history, _, _ := unstructured.NestedSlice(content, "status", "history") // starting with the newest
	for _, entry := range history {
		update, _ := entry.(map[string]any)
		if version, ok := update["version"].(string); ok && update["state"] == "Completed" {
			return version
		}
	}
	desired, _, _ := unstructured.NestedString(content, "status", "desired", "version")
	return desired
}

// proxyOf returns the proxy of OpenShift, or nil if there is none.
func proxyOf(proxy metav1.Object) *manifestsv1alpha1.PackageEnvironmentProxy {
	status := func(field string) string {
		text, _, _ := unstructured.NestedString(contentOf(proxy), "status", field)
		return text
	}
	p := manifestsv1alpha1.PackageEnvironmentProxy{
		HTTPProxy: status("httpProxy"), HTTPSProxy: status("httpsProxy"), NoProxy: status("noProxy"),
	}
	if p == (manifestsv1alpha1.PackageEnvironmentProxy{}) {
		return nil
	}
	return &p
}

// managedOf returns the metadata of managed OpenShift.
func managedOf(configMap metav1.Object) *manifestsv1alpha1.PackageEnvironmentManagedOpenShift {
	data, _, _ := unstructured.NestedStringMap(contentOf(configMap), "data")
	if data == nil {
		data = map[string]string{}
	}
	return &manifestsv1alpha1.PackageEnvironmentManagedOpenShift{Data: data}
}

// seenOf returns the part of a hosted cluster that packages see, with the namespace of its control
// plane.
func seenOf(cluster metav1.Object) *manifestsv1alpha1.PackageEnvironmentHyperShiftHostedCluster {
	selector, _, _ := unstructured.NestedStringMap(contentOf(cluster), "spec", "nodeSelector")
	annotations := maps.Clone(cluster.GetAnnotations())
	delete(annotations, lastApplied)
	return &manifestsv1alpha1.PackageEnvironmentHyperShiftHostedCluster{
		Metadata: manifestsv1alpha1.TemplateContextObjectMeta{
			Name: cluster.GetName(), Namespace: cluster.GetNamespace(), Labels: cluster.GetLabels(), Annotations: annotations,
		},
		HostedClusterNamespace: objects.HostedNamespace(cluster.GetNamespace(), cluster.GetName()),
		NodeSelector:           selector,
	}
}
