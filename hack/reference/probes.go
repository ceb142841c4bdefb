package main

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/loader/presets"
	"lockstep.run/lockstep/internal/probes"
)

// workloads have recipes as text, which preserves the order of their fields.
var workloads = map[string]bool{"Deployment": true, "StatefulSet": true, "DaemonSet": true, "ReplicaSet": true}

// tried are the kinds whose probes e2e/docs tries on objects, by the name of the file.
var tried = map[string]string{
	"CustomResourceDefinition": "crd", "Namespace": "namespace", "PersistentVolumeClaim": "persistentvolumeclaim", "Deployment": "deployment",
	"StatefulSet": "statefulset", "DaemonSet": "daemonset", "ReplicaSet": "replicaset", "Job": "job", "Pod": "pod", "APIService": "apiservice", "Certificate": "certificate",
}

var lines = regexp.MustCompile(`(?m)^`)

// probesByKind returns the page of phases and probes that follow from kinds.
func probesByKind() (string, error) {
	phases, probed, readyAtOnce := presets.Reference()
	var b strings.Builder
	b.WriteString(header("Phases and probes by kind", "internal/loader/presets"))
	b.WriteString("[`kickstart`](commands.md#kickstart) writes these phases and probes, and [`lint`](../lint.md) knows them. The probes follow kstatus. Copy them into [`spec.availabilityProbes`](../packages/probes.md).\n\n## Probes\n")
	for _, kind := range probed {
		text := ""
		if workloads[kind.Kind] {
			_, text = probes.Recipe(kind.Kind)
		} else {
			entries, _ := presets.Probes(map[schema.GroupKind]bool{kind: true})
			data, err := yaml.Marshal(entries[0].(map[string]any)["probes"])
			if err != nil {
				return "", err
			}
			text = fmt.Sprintf("- selector:\n    kind: {group: %q, kind: %s}\n  probes:\n", kind.Group, kind.Kind) + lines.ReplaceAllString(strings.TrimSuffix(string(data), "\n"), "  $0") + "\n"
		}
		verb := "skip: no object of the kind is recorded"
		if name := tried[kind.Kind]; name != "" {
			verb = "probe: " + name
		}
		fmt.Fprintf(&b, "\n### %s\n\n<!-- %s -->\n```yaml\n%s```\n", kind.Kind, verb, text)
	}

	b.WriteString("\n## Ready when they are written\n\nThey have no probe. Some might never become ready: an Ingress or a load balancer might get no address.\n\n| Kind, or group |\n|---|\n")
	for _, kind := range readyAtOnce {
		fmt.Fprintf(&b, "| `%s` |\n", strings.TrimPrefix(kind, "/"))
	}

	b.WriteString("\n## Phases\n\nIn their order. An object that waits for an object of a later phase has to move.\n\n| Phase | Kinds, and groups for all others of theirs |\n|---|---|\n")
	for _, phase := range phases {
		var names []string
		for _, kind := range phase[1:] {
			names = append(names, "`"+strings.TrimPrefix(kind, "/")+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", phase[0], strings.Join(names, ", "))
	}

	return b.String(), nil
}
