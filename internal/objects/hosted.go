package objects

import "strings"

// HostedClusterAnnotation is where HyperShift writes on a HostedControlPlane which HostedCluster it is of, as
// "namespace/name". The HostedControlPlane has the name of that, in the namespace of the control plane.
const HostedClusterAnnotation = "hypershift.openshift.io/cluster"

// HostedNamespace returns the name of the namespace that HyperShift makes for the control plane of a HostedCluster.
// Several HostedClusters have the same, and it may be that of something else: only one with its HostedControlPlane in it
// has that namespace.
func HostedNamespace(namespace, name string) string {
	return namespace + "-" + strings.ReplaceAll(name, ".", "-")
}

// IsControlPlaneOf reports whether a HostedControlPlane, by the value of its annotation, is of a HostedCluster whose name
// and namespace it has. One without the annotation is taken for it.
func IsControlPlaneOf(annotation, namespace, name string) bool {
	return annotation == "" || annotation == namespace+"/"+name
}
