package kickstart

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/fields"
)

// Phases.
const (
	phaseCRDs           = "crds"
	phaseNamespaces     = "namespaces"
	phasePolicies       = "policies"
	phaseRBAC           = "rbac"
	phaseStorage        = "storage"
	phasePreInstall     = "pre-install"
	phaseDeploy         = "deploy"
	phaseAdmission      = "admission"
	phaseAdmissionPatch = "admission-patch"
	phaseResources      = "resources"
	phaseDependents     = "dependents"
	phasePublish        = "publish"
	phaseOther          = "other"
	phasePostInstall    = "post-install"
)

// phaseTable has the phases in their order, with their kinds as group/Kind, or group for
// all others of it.
var phaseTable = []struct {
	name  string
	kinds []string
}{
	{phaseCRDs, []string{"apiextensions.k8s.io/CustomResourceDefinition"}},
	{phaseNamespaces, []string{"/Namespace", "project.openshift.io/Project"}},
	{phasePolicies, []string{
		"/LimitRange", "/ResourceQuota", "flowcontrol.apiserver.k8s.io", "networking.k8s.io/NetworkPolicy", "node.k8s.io/RuntimeClass",
		"policy/PodDisruptionBudget", "policy/PodSecurityPolicy", "scheduling.k8s.io/PriorityClass", "security.openshift.io",
	}},
	{phaseRBAC, []string{"rbac.authorization.k8s.io", "/ServiceAccount"}},
	{phaseStorage, []string{"/PersistentVolume", "storage.k8s.io", "snapshot.storage.k8s.io"}},
	{phasePreInstall, nil},
	{phaseDeploy, []string{
		"/ConfigMap", "/Endpoints", "/PersistentVolumeClaim", "/Pod", "/PodTemplate", "/ReplicationController", "/Secret", "/Service",
		"apps", "apps.openshift.io", "autoscaling", "batch", "discovery.k8s.io", "operators.coreos.com",
		// What makes Secrets: pods wait for them, so they are not behind the pods.
		"bitnami.com/SealedSecret", "cert-manager.io", "external-secrets.io", "secrets-store.csi.x-k8s.io",
	}},
	// Webhooks and policies are behind their servers.
	{phaseAdmission, []string{"admissionregistration.k8s.io"}},
	{phaseAdmissionPatch, nil},
	// Resources of the package's own definitions.
	{phaseResources, nil},
	// Workloads that call what controllers create from those.
	{phaseDependents, nil},
	{phasePublish, []string{"apiregistration.k8s.io", "gateway.networking.k8s.io", "networking.k8s.io", "route.openshift.io", "extensions/Ingress"}},
	{phaseOther, nil},
	{phasePostInstall, nil},
}

// phaseIndex returns the position of a phase, or -1.
func phaseIndex(name string) int {
	for i, phase := range phaseTable {
		if phase.name == name {
			return i
		}
	}
	return -1
}

func presetOf(kind schema.GroupKind) string {
	for _, key := range []string{kind.Group + "/" + kind.Kind, kind.Group} {
		for _, phase := range phaseTable {
			if slices.Contains(phase.kinds, key) {
				return phase.name
			}
		}
	}
	return phaseOther
}

// phases puts every object into a phase, and returns the phases in use in their order.
func (m *maker) phases(all []*object) []string {
	m.hookPhases(all)
	aggregated := aggregatedGroups(all)
	for _, o := range all {
		switch {
		case o.phase != "":
		case aggregated[o.gvk.Group]:
			o.phase = phaseOther
		case m.defined[o.kind()] != nil:
			o.phase = phaseResources
		default:
			o.phase = presetOf(o.kind())
		}
	}
	m.patchJobs(all)
	m.dependents(all)
	used := map[string]bool{}
	for _, o := range all {
		used[o.phase] = true
	}
	return slices.SortedFunc(maps.Keys(used), comparePhases)
}

// comparePhases orders phases; those of hooks are numbered.
func comparePhases(a, b string) int {
	index := func(phase string) int {
		if i := phaseIndex(phase); i >= 0 {
			return i
		}
		return phaseIndex(phase[:strings.LastIndex(phase, "-")])
	}
	return cmp.Or(index(a)-index(b), len(a)-len(b), strings.Compare(a, b))
}

// aggregatedGroups returns the API groups of the APIServices of the input.
func aggregatedGroups(all []*object) map[string]bool {
	out := map[string]bool{}
	for _, o := range all {
		if o.is("apiregistration.k8s.io", "APIService") && fields.Get(o.value, "spec", "service") != nil {
			out[fields.Text(o.value, "spec", "group")] = true
		}
	}
	return out
}
