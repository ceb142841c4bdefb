package objects

import "strings"

// HostedClusterAnnotation is set by HyperShift on a HostedControlPlane. It contains the
// "namespace/name" of its HostedCluster. The HostedControlPlane has the same name, and lives in the
// namespace of the control plane.
const HostedClusterAnnotation = "hypershift.openshift.io/cluster"

// HostedNamespace returns the name of the namespace that HyperShift makes for the control plane of
// a HostedCluster. The name is not unique: several HostedClusters can map to it, and an unrelated
// namespace can have it. The namespace belongs to the HostedCluster whose HostedControlPlane is in
// it.
func HostedNamespace(namespace, name string) string {
	return namespace + "-" + strings.ReplaceAll(name, ".", "-")
}

// IsControlPlaneOf reports whether a HostedControlPlane with this annotation belongs to a
// HostedCluster. The caller has compared their names and namespaces. Without the annotation, it is
// assumed to.
func IsControlPlaneOf(annotation, namespace, name string) bool {
	return annotation == "" || annotation == namespace+"/"+name
}
