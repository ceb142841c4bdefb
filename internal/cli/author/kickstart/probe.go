package kickstart

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/cli/author/fields"
	recipes "lockstep.run/lockstep/internal/probes"
)

// conditions are probes of conditions with the status True.
func conditions(types ...string) []any {
	var out []any
	for _, typ := range types {
		out = append(out, map[string]any{"condition": map[string]any{"type": typ, "status": "True"}})
	}
	return out
}

func cel(rule, message string) []any {
	return []any{map[string]any{"cel": map[string]any{"rule": rule, "message": message}}}
}

// recipe returns the recommended probes for a workload.
func recipe(kind string) []any {
	_, text := recipes.Recipe(kind)
	var entries []any
	if err := yaml.Unmarshal([]byte(text), &entries); err != nil {
		panic(err) // it is embedded
	}
	return fields.List(entries[0], "probes")
}

// probes are the conditions and phases by which kstatus evaluates these kinds.
var probes = []struct {
	group, kind string
	probes      []any
}{
	{"apiextensions.k8s.io", "CustomResourceDefinition", conditions("Established", "NamesAccepted")},
	{"", "Namespace", cel(`has(self.status) && self.status.phase == "Active"`, "the namespace is not active")},
	{"", "PersistentVolume", cel(`has(self.status) && self.status.phase in ["Available", "Bound"]`, "the volume is neither available nor bound")},
	{"", "PersistentVolumeClaim", cel(`has(self.status) && self.status.phase == "Bound"`, "the claim is not bound to a volume")},
	{"apps", "Deployment", recipe("Deployment")},
	{"apps", "StatefulSet", recipe("StatefulSet")},
	{"apps", "DaemonSet", recipe("DaemonSet")},
	{"apps", "ReplicaSet", recipe("ReplicaSet")},
	{"", "ReplicationController", recipe("ReplicationController")},
	{"batch", "Job", conditions("Complete")},
	{"", "Pod", cel(`has(self.status) && (self.status.phase == "Succeeded" || has(self.status.conditions) && self.status.conditions.exists(c, c.type == "Ready" && c.status == "True"))`, "the pod is neither ready nor done")},
	{"apiregistration.k8s.io", "APIService", conditions("Available")},
	{"cert-manager.io", "Certificate", conditions("Ready")},
	{"cert-manager.io", "Issuer", conditions("Ready")},
	{"cert-manager.io", "ClusterIssuer", conditions("Ready")},
	{"external-secrets.io", "ExternalSecret", conditions("Ready")},
	{"gateway.networking.k8s.io", "Gateway", conditions("Accepted")},
	{"route.openshift.io", "Route", cel(`has(self.status) && has(self.status.ingress) && self.status.ingress.size() > 0 && self.status.ingress.all(i, has(i.conditions) && i.conditions.exists(c, c.type == "Admitted" && c.status == "True"))`, "not all routers have admitted the route")},
	{"operators.coreos.com", "ClusterServiceVersion", cel(`has(self.status) && has(self.status.phase) && self.status.phase == "Succeeded"`, "the operator is not installed")},
}

// readyAtOnce are kinds, as group/Kind or group, that are ready when they are written, or
// may never become so: an Ingress and a load balancer may never get an address.
var readyAtOnce = map[string]bool{
	"/ConfigMap": true, "/Secret": true, "/ServiceAccount": true, "/LimitRange": true, "/ResourceQuota": true,
	"/Endpoints": true, "/PodTemplate": true, "/Service": true, "admissionregistration.k8s.io": true, "autoscaling": true, "batch/CronJob": true,
	"coordination.k8s.io": true, "discovery.k8s.io": true, "flowcontrol.apiserver.k8s.io": true, "networking.k8s.io": true,
	"node.k8s.io": true, "policy": true, "rbac.authorization.k8s.io": true, "scheduling.k8s.io": true, "storage.k8s.io": true,
	"security.openshift.io": true, "monitoring.coreos.com/ServiceMonitor": true, "monitoring.coreos.com/PodMonitor": true,
	"monitoring.coreos.com/PrometheusRule": true, "snapshot.storage.k8s.io/VolumeSnapshotClass": true,
}

// probesOf returns the probes for the kinds in use, and the kinds without a known probe.
func (m *maker) probesOf(all []*object) (out []any, unknown []string) {
	used := map[schema.GroupKind]bool{}
	for _, o := range all {
		used[o.kind()] = true
	}
	add := func(kind schema.GroupKind, probes []any) {
		out = append(out, map[string]any{
			"selector": map[string]any{"kind": map[string]any{"group": kind.Group, "kind": kind.Kind}}, "probes": probes,
		})
		delete(used, kind)
	}
	for _, p := range probes {
		if kind := (schema.GroupKind{Group: p.group, Kind: p.kind}); used[kind] {
			add(kind, p.probes)
		}
	}
	byName := func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) }
	for _, kind := range slices.SortedFunc(maps.Keys(used), byName) {
		d := m.defined[kind]
		switch {
		case readyAtOnce[kind.Group+"/"+kind.Kind] || readyAtOnce[kind.Group]:
		case d != nil && len(d.conditions) > 0:
			add(kind, conditions(d.conditions...))
		default:
			unknown = append(unknown, kind.String())
		}
	}
	return out, unknown
}

// readyColumn is a printer column that shows a condition by which custom resources report
// that they are ready.
var readyColumn = regexp.MustCompile(`^\s*\.status\.conditions\[\?\(\s*@\.type\s*==\s*["'](Ready|Available)["']\s*\)\]\.status\s*$`)

// columns returns the conditions that every served version of a definition shows.
func columns(o *object) []string {
	var common map[string]bool
	for _, version := range fields.List(o.value, "spec", "versions") {
		if !fields.Bool(version, "served") {
			continue
		}
		found := map[string]bool{}
		for _, column := range fields.List(version, "additionalPrinterColumns") {
			if match := readyColumn.FindStringSubmatch(fields.Text(column, "jsonPath")); match != nil && (common == nil || common[match[1]]) {
				found[match[1]] = true
			}
		}
		common = found
	}
	return slices.Sorted(maps.Keys(common))
}
