package v1alpha1

// PackageEnvironment describes the cluster. What was not detected is nil.
type PackageEnvironment struct {
	// Kubernetes is there always.
	Kubernetes PackageEnvironmentKubernetes `json:"kubernetes"`

	// OpenShift is there on OpenShift.
	OpenShift *PackageEnvironmentOpenShift `json:"openShift,omitempty"`

	// Proxy is there where OpenShift has a proxy.
	Proxy *PackageEnvironmentProxy `json:"proxy,omitempty"`

	// HyperShift is there on a HyperShift management cluster.
	HyperShift *PackageEnvironmentHyperShift `json:"hyperShift,omitempty"`
}

// PackageEnvironmentKubernetes describes Kubernetes.
type PackageEnvironmentKubernetes struct {
	// Version as the API server tells it.
	Version string `json:"version"`
}

// PackageEnvironmentOpenShift describes OpenShift.
type PackageEnvironmentOpenShift struct {
	// Version of the last completed update.
	Version string `json:"version"`

	// Managed is there on managed OpenShift.
	Managed *PackageEnvironmentManagedOpenShift `json:"managed,omitempty"`
}

// PackageEnvironmentManagedOpenShift describes managed OpenShift.
type PackageEnvironmentManagedOpenShift struct {
	// Data of the cluster's managed ConfigMap.
	Data map[string]string `json:"data"`
}

// PackageEnvironmentProxy describes a proxy.
type PackageEnvironmentProxy struct {
	// HTTPProxy is the proxy for HTTP.
	HTTPProxy string `json:"httpProxy,omitempty"`

	// HTTPSProxy is the proxy for HTTPS.
	HTTPSProxy string `json:"httpsProxy,omitempty"`

	// NoProxy lists what to reach without a proxy, separated by commas.
	NoProxy string `json:"noProxy,omitempty"`
}

// PackageEnvironmentHyperShift describes HyperShift.
type PackageEnvironmentHyperShift struct {
	// HostedCluster is there in the namespace of a hosted cluster.
	HostedCluster *PackageEnvironmentHyperShiftHostedCluster `json:"hostedCluster,omitempty"`
}

// PackageEnvironmentHyperShiftHostedCluster describes a hosted cluster.
type PackageEnvironmentHyperShiftHostedCluster struct {
	// Metadata of the HostedCluster.
	Metadata TemplateContextObjectMeta `json:"metadata"`

	// HostedClusterNamespace is the namespace of its control plane.
	HostedClusterNamespace string `json:"hostedClusterNamespace"`

	// NodeSelector of the control plane's pods.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}
