package kickstart

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/fields"
)

// Phases, by the kinds that belong into them.
const (
	phaseCRDs       = "crds"
	phaseNamespaces = "namespaces"
	phasePolicies   = "policies"
	phaseRBAC       = "rbac"
	phaseStorage    = "storage"
	phasePreInstall = "pre-install"
	phaseDeploy     = "deploy"
	// phaseAdmission has webhooks and policies, behind their servers.
	phaseAdmission      = "admission"
	phaseAdmissionPatch = "admission-patch"
	// phaseResources has resources of the package's own definitions.
	phaseResources = "resources"
	// phaseDependents has workloads that call what controllers create from those.
	phaseDependents  = "dependents"
	phasePublish     = "publish"
	phaseOther       = "other"
	phasePostInstall = "post-install"
)

var phaseOrder = []string{
	phaseCRDs, phaseNamespaces, phasePolicies, phaseRBAC, phaseStorage, phasePreInstall,
	phaseDeploy, phaseAdmission, phaseAdmissionPatch, phaseResources, phaseDependents, phasePublish, phaseOther, phasePostInstall,
}

// presets are the phases of kinds, as group/Kind, or of all kinds of a group.
var presets = map[string]string{
	"apiextensions.k8s.io/CustomResourceDefinition": phaseCRDs,

	"/Namespace":                   phaseNamespaces,
	"project.openshift.io/Project": phaseNamespaces,

	"/LimitRange":                     phasePolicies,
	"/ResourceQuota":                  phasePolicies,
	"flowcontrol.apiserver.k8s.io":    phasePolicies,
	"networking.k8s.io/NetworkPolicy": phasePolicies,
	"node.k8s.io/RuntimeClass":        phasePolicies,
	"policy/PodDisruptionBudget":      phasePolicies,
	"policy/PodSecurityPolicy":        phasePolicies,
	"scheduling.k8s.io/PriorityClass": phasePolicies,
	"security.openshift.io":           phasePolicies,
	"rbac.authorization.k8s.io":       phaseRBAC,
	"/ServiceAccount":                 phaseRBAC,
	"/PersistentVolume":               phaseStorage,
	"storage.k8s.io":                  phaseStorage,
	"snapshot.storage.k8s.io":         phaseStorage,
	"/ConfigMap":                      phaseDeploy,
	"/Endpoints":                      phaseDeploy,
	"/PersistentVolumeClaim":          phaseDeploy,
	"/Pod":                            phaseDeploy,
	"/PodTemplate":                    phaseDeploy,
	"/ReplicationController":          phaseDeploy,
	"/Secret":                         phaseDeploy,
	"/Service":                        phaseDeploy,
	"apps":                            phaseDeploy,
	"apps.openshift.io":               phaseDeploy,
	"autoscaling":                     phaseDeploy,
	"batch":                           phaseDeploy,
	"discovery.k8s.io":                phaseDeploy,
	"operators.coreos.com":            phaseDeploy,
	"admissionregistration.k8s.io":    phaseAdmission,
	"apiregistration.k8s.io":          phasePublish,
	"gateway.networking.k8s.io":       phasePublish,
	"networking.k8s.io":               phasePublish,
	"route.openshift.io":              phasePublish,
	"extensions/Ingress":              phasePublish,

	// What makes Secrets: pods wait for them, so they are not behind the pods.
	"bitnami.com/SealedSecret":   phaseDeploy,
	"cert-manager.io":            phaseDeploy,
	"external-secrets.io":        phaseDeploy,
	"secrets-store.csi.x-k8s.io": phaseDeploy,
}

func presetOf(kind schema.GroupKind) string {
	return cmp.Or(presets[kind.Group+"/"+kind.Kind], presets[kind.Group], phaseOther)
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
		if i := slices.Index(phaseOrder, phase); i >= 0 {
			return i
		}
		return slices.Index(phaseOrder, phase[:strings.LastIndex(phase, "-")])
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
