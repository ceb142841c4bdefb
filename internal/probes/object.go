package probes

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
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

// object is one evaluation's view of a live object. It is not safe for concurrent use.
type object struct {
	root       map[string]any
	kind       schema.GroupKind
	generation int64
	// secret keeps values out of messages.
	secret bool
	// jq is root in gojq's types; nil until a probe needs it.
	jq any
	// cost is the sum of all probes so far, in steps of jq and units of CEL.
	cost int
}

// newObject reads the fields that all probes need. A generation that is not an integer counts as 0,
// which never differs from a missing one.
func newObject(root map[string]any) *object {
	generation, _ := lookup(root, "metadata", "generation")
	number, _ := generation.(int64)
	kind := groupKind(root)
	return &object{root: root, kind: kind, generation: number, secret: isSecret(kind)}
}

// groupKind returns the kind without its version, because entries of probes select by group and
// kind.
func groupKind(root map[string]any) schema.GroupKind {
	apiVersion, _ := root["apiVersion"].(string)
	kind, _ := root["kind"].(string)
	return schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
}

// isSecret reports whether values of the kind must not appear in messages.
func isSecret(gk schema.GroupKind) bool {
	return gk == schema.GroupKind{Kind: "Secret"}
}

// lookup returns the value at a path of keys. It does not index lists.
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

// labelsOf is the labels of a live object as labels.Labels, without a copy for each entry that
// selects by them.
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

// quoted cuts a value for a message, at a whole character. Statuses are limited in size, and values
// are written by other controllers.
func quoted(text string) string { return limits.Cut(text, probeMessageValueBytes) }
