package kickstart

import (
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	recipes "lockstep.run/lockstep/internal/probes"
)

// Probes, as kstatus judges these kinds.
func conditionProbe(typ string) map[string]any {
	return map[string]any{"condition": map[string]any{"type": typ, "status": "True"}}
}

func celProbe(rule, message string) map[string]any {
	return map[string]any{"cel": map[string]any{"rule": rule, "message": message}}
}

// recipe returns the recommended probes for a workload.
func recipe(kind string) []any {
	entry, _ := recipes.Recipe(kind)
	var all []any
	for _, p := range entry.Probes {
		if p.Condition != nil {
			all = append(all, conditionProbe(p.Condition.Type))
		} else {
			all = append(all, celProbe(p.CEL.Rule, p.CEL.Message))
		}
	}
	return all
}

var probes = []struct {
	kind   schema.GroupKind
	probes []any
}{
	{schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, []any{conditionProbe("Established"), conditionProbe("NamesAccepted")}},
	{schema.GroupKind{Kind: "Namespace"}, []any{celProbe(`has(self.status) && self.status.phase == "Active"`, "the namespace is not active")}},
	{schema.GroupKind{Kind: "PersistentVolume"}, []any{celProbe(`has(self.status) && self.status.phase in ["Available", "Bound"]`, "the volume is neither available nor bound")}},
	{schema.GroupKind{Kind: "PersistentVolumeClaim"}, []any{celProbe(`has(self.status) && self.status.phase == "Bound"`, "the claim is not bound to a volume")}},
	{schema.GroupKind{Group: "apps", Kind: "Deployment"}, recipe("Deployment")},
	{schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, recipe("StatefulSet")},
	{schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, recipe("DaemonSet")},
	{schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, recipe("ReplicaSet")},
	{schema.GroupKind{Kind: "ReplicationController"}, recipe("ReplicationController")},
	{schema.GroupKind{Group: "batch", Kind: "Job"}, []any{conditionProbe("Complete")}},
	{schema.GroupKind{Kind: "Pod"}, []any{celProbe(`has(self.status) && (self.status.phase == "Succeeded" || has(self.status.conditions) && self.status.conditions.exists(c, c.type == "Ready" && c.status == "True"))`, "the pod is neither ready nor done")}},
	{schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}, []any{conditionProbe("Available")}},
	{schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}, []any{conditionProbe("Ready")}},
	{schema.GroupKind{Group: "cert-manager.io", Kind: "Issuer"}, []any{conditionProbe("Ready")}},
	{schema.GroupKind{Group: "cert-manager.io", Kind: "ClusterIssuer"}, []any{conditionProbe("Ready")}},
	{schema.GroupKind{Group: "external-secrets.io", Kind: "ExternalSecret"}, []any{conditionProbe("Ready")}},
	{schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "Gateway"}, []any{conditionProbe("Accepted")}},
	{schema.GroupKind{Group: "route.openshift.io", Kind: "Route"}, []any{celProbe(`has(self.status) && has(self.status.ingress) && self.status.ingress.size() > 0 && self.status.ingress.all(i, has(i.conditions) && i.conditions.exists(c, c.type == "Admitted" && c.status == "True"))`, "not all routers have admitted the route")}},
	{schema.GroupKind{Group: "operators.coreos.com", Kind: "ClusterServiceVersion"}, []any{celProbe(`has(self.status) && has(self.status.phase) && self.status.phase == "Succeeded"`, "the operator is not installed")}},
}

// atOnce are kinds, as group/Kind or group, that are ready when they are written,
// or whose status says nothing that everyone could wait for: an Ingress and a load
// balancer may never get an address, a budget and an autoscaler follow their pods.
var atOnce = map[string]bool{
	"/ConfigMap": true, "/Secret": true, "/ServiceAccount": true, "/LimitRange": true, "/ResourceQuota": true,
	"/Endpoints": true, "/PodTemplate": true, "/Service": true, "admissionregistration.k8s.io": true, "autoscaling": true, "batch/CronJob": true,
	"coordination.k8s.io": true, "discovery.k8s.io": true, "flowcontrol.apiserver.k8s.io": true, "networking.k8s.io": true,
	"node.k8s.io": true, "policy": true, "rbac.authorization.k8s.io": true, "scheduling.k8s.io": true, "storage.k8s.io": true,
	"security.openshift.io": true, "monitoring.coreos.com/ServiceMonitor": true, "monitoring.coreos.com/PodMonitor": true,
	"monitoring.coreos.com/PrometheusRule": true, "snapshot.storage.k8s.io/VolumeSnapshotClass": true,
}

// probesOf returns the probes for the kinds in use, and the kinds without a known
// probe.
func (m *maker) probesOf(all []*object) (out []any, unknown []string) {
	used := map[schema.GroupKind]bool{}
	for _, o := range all {
		used[o.kind()] = true
	}
	for _, p := range probes {
		if used[p.kind] {
			out = append(out, probeEntry(p.kind, p.probes))
			delete(used, p.kind)
		}
	}
	missing := map[string]bool{}
	for _, kind := range slices.SortedFunc(maps.Keys(used), func(a, b schema.GroupKind) int { return compareKinds(a, b) }) {
		if atOnce[kind.Group+"/"+kind.Kind] || kind.Group != "" && atOnce[kind.Group] {
			continue
		}
		if d := m.defined[kind]; d != nil && len(d.conditions) > 0 {
			var list []any
			for _, c := range d.conditions {
				list = append(list, conditionProbe(c))
			}
			out = append(out, probeEntry(kind, list))
			continue
		}
		missing[kind.String()] = true
	}
	return out, slices.Sorted(maps.Keys(missing))
}

func probeEntry(kind schema.GroupKind, probes []any) any {
	return map[string]any{
		"selector": map[string]any{"kind": map[string]any{"group": kind.Group, "kind": kind.Kind}},
		"probes":   probes,
	}
}

func compareKinds(a, b schema.GroupKind) int {
	if a.String() < b.String() {
		return -1
	}
	return 1
}

// readyColumn is a printer column that shows one of the conditions by which
// custom resources say that they are ready.
var readyColumn = regexp.MustCompile(`^\s*\.status\.conditions\[\?\(\s*@\.type\s*==\s*["'](Ready|Available)["']\s*\)\]\.status\s*$`)

// columns returns the conditions that every served version of a definition shows.
func columns(o *object) []string {
	versions, _ := dig(o.value, "spec", "versions").([]any)
	var common map[string]bool
	for _, v := range versions {
		if served, _ := dig(v, "served").(bool); !served {
			continue
		}
		found := map[string]bool{}
		list, _ := dig(v, "additionalPrinterColumns").([]any)
		for _, column := range list {
			if match := readyColumn.FindStringSubmatch(text(column, "jsonPath")); match != nil && (common == nil || common[match[1]]) {
				found[match[1]] = true
			}
		}
		common = found
	}
	return slices.Sorted(maps.Keys(common))
}
