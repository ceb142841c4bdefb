package v1alpha1

// PackageEnvironment describes the cluster. Parts that were not detected are nil.
type PackageEnvironment struct {
	// Kubernetes is always set.
	Kubernetes PackageEnvironmentKubernetes `json:"kubernetes"`

	// OpenShift is set on OpenShift.
	OpenShift *PackageEnvironmentOpenShift `json:"openShift,omitempty"`

	// Proxy is set if the Proxy "cluster" of OpenShift has one of its values.
	Proxy *PackageEnvironmentProxy `json:"proxy,omitempty"`

	// HyperShift is set if the cluster serves HostedClusters: on a HyperShift
	// management cluster.
	HyperShift *PackageEnvironmentHyperShift `json:"hyperShift,omitempty"`
}

// PackageEnvironmentKubernetes describes Kubernetes.
type PackageEnvironmentKubernetes struct {
	// Version as the API server reports it, such as v1.37.0.
	Version string `json:"version"`
}

// PackageEnvironmentOpenShift describes OpenShift.
type PackageEnvironmentOpenShift struct {
	// Version of the last completed update, such as 4.20.1; until one has completed, of
	// the running update.
	Version string `json:"version"`

	// Managed is set on managed OpenShift.
	Managed *PackageEnvironmentManagedOpenShift `json:"managed,omitempty"`
}

// PackageEnvironmentManagedOpenShift describes managed OpenShift.
type PackageEnvironmentManagedOpenShift struct {
	// Data of the ConfigMap osd-cluster-metadata in the namespace openshift-config.
	Data map[string]string `json:"data"`
}

// PackageEnvironmentProxy describes a proxy.
type PackageEnvironmentProxy struct {
	// HTTPProxy is the proxy for HTTP.
	HTTPProxy string `json:"httpProxy,omitempty"`

	// HTTPSProxy is the proxy for HTTPS.
	HTTPSProxy string `json:"httpsProxy,omitempty"`

	// NoProxy lists hosts to reach without a proxy, separated by commas.
	NoProxy string `json:"noProxy,omitempty"`
}

// PackageEnvironmentHyperShift describes HyperShift.
type PackageEnvironmentHyperShift struct {
	// HostedCluster is set for a Package in the namespace of a hosted cluster's control
	// plane.
	HostedCluster *PackageEnvironmentHyperShiftHostedCluster `json:"hostedCluster,omitempty"`
}

// PackageEnvironmentHyperShiftHostedCluster describes a hosted cluster.
type PackageEnvironmentHyperShiftHostedCluster struct {
	// Metadata of the HostedCluster.
	Metadata TemplateContextObjectMeta `json:"metadata"`

	// HostedClusterNamespace is the namespace of its control plane: namespace and
	// name of the HostedCluster with a dash between them, and dashes for dots.
	HostedClusterNamespace string `json:"hostedClusterNamespace"`

	// NodeSelector of the control plane's pods.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}
