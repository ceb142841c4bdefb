package kickstart

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// phaseAdmission has webhooks and policies: behind their servers, before the
	// objects that they check.
	phaseAdmission      = "admission"
	phaseAdmissionPatch = "admission-patch"
	// phaseResources has resources of the package's own definitions, behind their
	// controllers and webhooks.
	phaseResources = "resources"
	// phaseDependents has workloads that call what controllers create from those.
	phaseDependents  = "dependents"
	phasePublish     = "publish"
	phaseOther       = "other"
	phasePostInstall = "post-install"
)

// phaseOrder is the order of the rollout.
var phaseOrder = []string{
	phaseCRDs, phaseNamespaces, phasePolicies, phaseRBAC, phaseStorage, phasePreInstall,
	phaseDeploy, phaseAdmission, phaseAdmissionPatch, phaseResources, phaseDependents, phasePublish, phaseOther, phasePostInstall,
}

// presets says where kinds belong, as group/Kind; a group alone stands for all of
// its kinds.
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
	if phase, ok := presets[kind.Group+"/"+kind.Kind]; ok {
		return phase
	}
	if phase, ok := presets[kind.Group]; ok && kind.Group != "" {
		return phase
	}
	return phaseOther
}

// phases puts every object into a phase, and returns the phases in use in their
// order. What the package defines itself comes after its definition in any case.
func (m *maker) phases(all []*object) []string {
	m.hookPhases(all)
	aggregated := aggregatedGroups(all)
	used := map[string]bool{}
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
	for _, o := range all {
		used[o.phase] = true
	}
	return inOrder(used)
}

// inOrder sorts phases; those of hooks are numbered.
func inOrder(used map[string]bool) []string {
	var out []string
	for _, phase := range phaseOrder {
		var numbered []string
		for name := range used {
			if name == phase || strings.HasPrefix(name, phase+"-") && (phase == phasePreInstall || phase == phasePostInstall) {
				numbered = append(numbered, name)
			}
		}
		slices.SortFunc(numbered, func(a, b string) int {
			if len(a) != len(b) {
				return len(a) - len(b)
			}
			return strings.Compare(a, b)
		})
		out = append(out, numbered...)
	}
	return out
}

// aggregatedGroups returns the API groups of the APIServices of the input.
func aggregatedGroups(all []*object) map[string]bool {
	out := map[string]bool{}
	for _, o := range all {
		if o.is("apiregistration.k8s.io", "APIService") && dig(o.value, "spec", "service") != nil {
			out[text(o.value, "spec", "group")] = true
		}
	}
	return out
}
