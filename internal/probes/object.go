package probes

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const probeMessageValueBytes = 128 // at most, of a value in a probe's message

// observing are the built-in kinds whose controllers report with every status the generation that
// they acted on. Other kinds, such as HorizontalPodAutoscaler, can have the field and never fill it
// in.
var observing = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "DaemonSet"}: true, {Group: "apps", Kind: "Deployment"}: true,
	{Group: "apps", Kind: "ReplicaSet"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Kind: "ReplicationController"}: true, {Group: "policy", Kind: "PodDisruptionBudget"}: true,
}

type object struct {
	root       map[string]any
	kind       schema.GroupKind
	generation int64
	// secret keeps values out of messages.
	secret bool
	// jq is root in gojq's types; nil until a probe needs it.
	jq   any
	cost int
}

func newObject(root map[string]any) *object {
	generation, _ := lookup(root, "metadata", "generation")
	number, _ := generation.(int64)
	kind := groupKind(root)
	return &object{root: root, kind: kind, generation: number, secret: isSecret(kind)}
}

func groupKind(root map[string]any) schema.GroupKind {
	apiVersion, _ := root["apiVersion"].(string)
	kind, _ := root["kind"].(string)
	gk := schema.GroupKind{Kind: kind}
	if group, _, found := strings.Cut(apiVersion, "/"); found {
		gk.Group = group
	}
	return gk
}

func isSecret(gk schema.GroupKind) bool {
	return gk == schema.GroupKind{Kind: "Secret"}
}

func lookup(root map[string]any, path ...string) (value any, found bool) {
	value = root
	for _, key := range path {
		fields, isMap := value.(map[string]any)
		if !isMap {
			return nil, false
		}
		if value, found = fields[key]; !found {
			return nil, false
		}
	}
	return value, true
}

// outdated reports whether the status describes another generation.
func (o *object) outdated() bool {
	value, _ := lookup(o.root, "status", "observedGeneration")
	observed, isInteger := value.(int64)
	return isInteger && observed != o.generation
}

// unobserved reports whether the object's controller has not acted yet. Until then all counters of
// a DaemonSet, for example, are 0, and a probe would find them equal.
func (o *object) unobserved() bool {
	_, found := lookup(o.root, "status", "observedGeneration")
	return !found && observing[o.kind] && o.generation > 0
}

type labelsOf map[string]any

func (l labelsOf) Has(key string) bool { _, found := l.Lookup(key); return found }

func (l labelsOf) Get(key string) string { value, _ := l.Lookup(key); return value }

func (l labelsOf) Lookup(key string) (string, bool) {
	value, found := l[key].(string)
	return value, found
}

func (o *object) labels() labelsOf {
	value, _ := lookup(o.root, "metadata", "labels")
	fields, _ := value.(map[string]any)
	return fields
}

func quoted(text string) string {
	if len(text) <= probeMessageValueBytes {
		return text
	}
	return strings.ToValidUTF8(text[:probeMessageValueBytes], "") + "…"
}
