package loader

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

var (
	crdKind        = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiServiceKind = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
)

const (
	namespaceMissing = "%s is namespaced, and a ClusterPackage has no namespace of its own"
	namespaceRemedy  = "Set metadata.namespace, or spec.defaultNamespace of the ClusterPackage, or in another cluster its spec.targetRef.namespace."
	namespaceGiven   = "%s names no namespace: a ClusterPackage of the package needs spec.defaultNamespace, or in another cluster spec.targetRef.namespace"
)

// scope checks the scope without a cluster. The engine repeats the check with a RESTMapping.
func (c *check) scope() {
	annotations, _ := c.meta["annotations"].(map[string]any)
	if phase, _ := annotations[corev1alpha1.PhaseAnnotation].(string); elsewhere(c.r.classes[phase]) {
		return
	}

	kind := c.out.gvk.GroupKind()
	namespaced, known := BuiltInScope(kind)
	if c.r.opts.scope() == corev1alpha1.ScopeCluster {
		c.clusterScope(kind, namespaced, known)
		return
	}

	own := c.r.opts.Package.Metadata.Namespace
	switch {
	case kind == crdKind:
		c.fail(violation.ReasonObjectScope, "kind", "Install the package as a ClusterPackage (--cluster), or bring the CustomResourceDefinition in a ClusterPackage of its own.",
			"a CustomResourceDefinition is cluster-scoped, and a Package may only bring objects of its own namespace")
	case known && !namespaced:
		c.fail(violation.ReasonObjectScope, "kind", "Install the package as a ClusterPackage (--cluster), or leave the object out.",
			"%s is cluster-scoped, and a Package may only bring objects of its own namespace", kind.Kind)
	case c.out.namespace != "" && c.r.opts.anyNamespace:
		c.warn(violation.ReasonObjectInvalid, "metadata.namespace", "Remove metadata.namespace.", "the package can be installed in the namespace %q only", c.out.namespace)
	case c.out.namespace != "" && c.out.namespace != own:
		c.fail(violation.ReasonObjectScope, "metadata.namespace", "Remove metadata.namespace, or install the package as a ClusterPackage (--cluster).",
			"the object is in the namespace %q, the Package in %q", c.out.namespace, own)
	}
}

// clusterScope checks the scope of an object of a ClusterPackage, which gets the default namespace.
func (c *check) clusterScope(kind schema.GroupKind, namespaced, known bool) {
	if known && !namespaced && c.out.namespace != "" {
		c.dropped(violation.ReasonObjectInvalid, "metadata.namespace", "Remove it.", "%s is cluster-scoped", kind.Kind)
		delete(c.meta, "namespace")
		c.out.namespace = ""
	}

	if own := c.r.opts.DefaultNamespace; known && namespaced && c.out.namespace == "" && own != "" {
		c.meta["namespace"] = own
		c.out.namespace = own
		if c.r.opts.anyNamespace {
			c.warn(violation.ReasonObjectScope, "metadata.namespace", "Set it if it is always the same.", namespaceGiven, kind.Kind)
		}
	}

	if known && namespaced && c.out.namespace == "" {
		c.fail(violation.ReasonObjectScope, "metadata.namespace", namespaceRemedy, namespaceMissing, kind.Kind)
	}
}

// BuiltInScope returns the scope of a kind of Kubernetes or this engine.
func BuiltInScope(kind schema.GroupKind) (namespaced, known bool) {
	namespaced, known = builtIn[kind]
	return namespaced, known
}

var builtIn = map[schema.GroupKind]bool{}

func init() {
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

func definitionOf(kind schema.GroupKind, body map[string]any) *definition {
	if kind != crdKind {
		return nil
	}

	spec, _ := body["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	d := &definition{}
	d.kind.Group, _ = spec["group"].(string)
	d.kind.Kind, _ = names["kind"].(string)
	d.namespaced = fmt.Sprint(spec["scope"]) == "Namespaced"
	versions, _ := spec["versions"].([]any)
	for _, entry := range versions {
		version, _ := entry.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			d.served = append(d.served, name)
		}
	}

	return d
}

// aggregationOf returns the API of an APIService that is served by another server than the API
// server.
func aggregationOf(kind schema.GroupKind, body map[string]any) (gv schema.GroupVersion) {
	spec, _ := body["spec"].(map[string]any)
	if kind == apiServiceKind && spec["service"] != nil {
		gv.Group, _ = spec["group"].(string)
		gv.Version, _ = spec["version"].(string)
	}
	return gv
}

// defaultNamespaces sets the default namespace on objects whose kind the package defines or the
// cluster knows.
func (l *load) defaultNamespaces(all []*object) {
	if l.opts.DefaultNamespace == "" || l.opts.scope() != corev1alpha1.ScopeCluster {
		return
	}

	defined := definitionsOf(all)
	for _, o := range all {
		kind := o.gvk.GroupKind()
		if _, known := BuiltInScope(kind); known || o.namespace != "" || elsewhere(o.class) {
			continue
		}
		namespaced, known := l.scopeOf(kind, defined)
		if !known && !l.opts.anyNamespace {
			l.warnings = append(l.warnings, o.violation(violation.ReasonObjectScope, "metadata.namespace").Because(
				"If it is, set metadata.namespace, or bring its CustomResourceDefinition in the same package.",
				"it is not known whether %s is namespaced; spec.defaultNamespace is not applied", kind))
		}
		if !namespaced {
			continue
		}
		if l.opts.anyNamespace {
			l.warnings = append(l.warnings, o.violation(violation.ReasonObjectScope, "metadata.namespace").Because("Set it if it is always the same.", namespaceGiven, kind.Kind))
		}
		if err := o.setNamespace(l.opts.DefaultNamespace); err != nil {
			l.add(o.violation(violation.ReasonObjectInvalid, "").Because("", "%v", err))
		}
	}
}

func (l *load) scopeOf(kind schema.GroupKind, defined map[schema.GroupKind]*definition) (namespaced, known bool) {
	if d := defined[kind]; d != nil {
		return d.namespaced, true
	}
	if l.opts.Namespaced != nil {
		return l.opts.Namespaced(kind)
	}
	return false, false
}

func (o *object) setNamespace(namespace string) error {
	body := map[string]any{}
	if err := json.Unmarshal(o.stored.Object.Raw, &body); err != nil {
		return err
	}

	meta, ok := body["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("the object has no metadata")
	}

	meta["namespace"] = namespace
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}

	o.stored.Object.Raw, o.namespace = raw, namespace
	return nil
}
