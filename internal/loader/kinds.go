package loader

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

var (
	// These kinds have rules of their own in the loader.
	crdKind        = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiServiceKind = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	secretKind     = schema.GroupKind{Kind: "Secret"}
)

// BuiltInScope returns the scope of a kind of Kubernetes or this engine.
func BuiltInScope(kind schema.GroupKind) (namespaced, known bool) {
	namespaced, known = builtIn[kind]
	return namespaced, known
}

// builtIn maps the kinds of Kubernetes and the engine to whether they are namespaced. It is
// compiled in, because packages are checked without a cluster.
var builtIn = map[schema.GroupKind]bool{}

func init() {
	// The first list of a group has its cluster-scoped kinds, the second one its namespaced ones.
	for group, kinds := range map[string][2][]string{
		"": {
			{"Namespace", "Node", "PersistentVolume", "ComponentStatus"},
			{"Binding", "ConfigMap", "Endpoints", "Event", "LimitRange", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount"},
		},
		"admissionregistration.k8s.io": {
			{
				"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
				"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
			}, nil,
		},
		"apiextensions.k8s.io":         {{"CustomResourceDefinition"}, nil},
		"apiregistration.k8s.io":       {{"APIService"}, nil},
		"apps":                         {nil, {"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}},
		"authentication.k8s.io":        {{"SelfSubjectReview", "TokenReview"}, nil},
		"authorization.k8s.io":         {{"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"}, {"LocalSubjectAccessReview"}},
		"autoscaling":                  {nil, {"HorizontalPodAutoscaler"}},
		"batch":                        {nil, {"CronJob", "Job"}},
		"certificates.k8s.io":          {{"CertificateSigningRequest", "ClusterTrustBundle"}, {"PodCertificateRequest"}},
		"coordination.k8s.io":          {nil, {"Lease", "LeaseCandidate"}},
		"discovery.k8s.io":             {nil, {"EndpointSlice"}},
		"events.k8s.io":                {nil, {"Event"}},
		"flowcontrol.apiserver.k8s.io": {{"FlowSchema", "PriorityLevelConfiguration"}, nil},
		"internal.apiserver.k8s.io":    {{"StorageVersion"}, nil},
		"networking.k8s.io":            {{"IngressClass", "IPAddress", "ServiceCIDR"}, {"Ingress", "NetworkPolicy"}},
		"node.k8s.io":                  {{"RuntimeClass"}, nil},
		"policy":                       {nil, {"PodDisruptionBudget"}},
		"rbac.authorization.k8s.io":    {{"ClusterRole", "ClusterRoleBinding"}, {"Role", "RoleBinding"}},
		"resource.k8s.io":              {{"DeviceClass", "DeviceTaintRule", "ResourceSlice"}, {"ResourceClaim", "ResourceClaimTemplate"}},
		"scheduling.k8s.io":            {{"PriorityClass"}, nil},
		"storage.k8s.io":               {{"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"}, {"CSIStorageCapacity"}},
		"storagemigration.k8s.io":      {{"StorageVersionMigration"}, nil},
		corev1alpha1.GroupVersion.Group: {
			{
				"ClusterPackage", "ClusterObjectDeployment", "ClusterObjectSet", "ClusterObjectSetPhase", "ClusterObjectSlice",
				"ClusterObjectTemplate", "HostedClusterPackage", "ImageConfig",
			},
			{"Package", "ObjectDeployment", "ObjectSet", "ObjectSetPhase", "ObjectSlice", "ObjectTemplate"},
		},
	} {
		for i, namespaced := range []bool{false, true} {
			for _, kind := range kinds[i] {
				builtIn[schema.GroupKind{Group: group, Kind: kind}] = namespaced
			}
		}
	}
}
