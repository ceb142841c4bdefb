package applies_test

import "fmt"

// row is a history that once ended differently than under kubectl apply, or that has to end
// better.
type row struct {
	name, kind string
	// origin and version describe the object that Lockstep adopts.
	origin  string
	version choice
	// strict is passed to the history.
	strict bool
	events []event
}

func (r *row) history() *history {
	return &history{kind: kindNamed(r.kind), origin: r.origin, version: r.version, strict: r.strict, events: r.events}
}

// with returns the choice of alternatives by the names of their dimensions.
func with(pairs ...any) choice {
	c := choice{}
	for i := 0; i < len(pairs); i += 2 {
		c[fmt.Sprint(pairs[i])], _ = pairs[i+1].(int)
	}
	return c
}

// then applies a version.
func then(pairs ...any) event { return event{apply: with(pairs...)} }

// by edits a dimension, and meanwhile does so while the engine is away.
func by(how, dimension string, to int) event {
	return event{edit: &edit{how: how, dimension: dimension, to: to}}
}

func meanwhile(how, dimension string, to int) event {
	return event{edit: &edit{how: how, dimension: dimension, to: to, away: true}}
}

func scaled(to int) event { return event{edit: &edit{how: "scale", to: to}} }

var restarted = event{restart: true}

// backAndForth goes from one alternative to another one and back.
func backAndForth(dimension string, from, to int) []event {
	return []event{then(dimension, from), then(dimension, to), then(dimension, from)}
}

// table has a row for each rule.
func table() []row {
	var all []row
	for _, some := range [][]row{exchanges(), remainders(), controllers(), leavings(), drifts(), recreations(), adoptions(), replicas()} {
		all = append(all, some...)
	}
	return all
}

// exchanges returns first changes of objects that a POST created: another field replaces a field.
func exchanges() []row {
	return []row{
		{name: "a port number under its name", kind: "Service", events: backAndForth("ports", 0, 1)},
		{name: "a protocol under its name", kind: "Service", events: backAndForth("ports", 0, 4)},
		{name: "a named port for one without a name", kind: "Service", events: backAndForth("ports", 4, 5)},
		{name: "a container port under its name", kind: "Deployment", events: backAndForth("ports", 1, 2)},
		{name: "value for valueFrom", kind: "Deployment", events: backAndForth("env", 1, 2)},
		{name: "one source of a variable for another", kind: "StatefulSet", events: backAndForth("env", 3, 4)},
		{name: "a probe handler", kind: "DaemonSet", events: backAndForth("liveness", 1, 2)},
		{name: "a lifecycle handler", kind: "Deployment", events: backAndForth("pre-stop", 1, 3)},
		{name: "a volume type", kind: "CronJob", events: backAndForth("volume", 3, 5)},
		{name: "an empty directory for a Secret", kind: "Deployment", events: backAndForth("volume", 1, 5)},
		{name: "a limit that leaves while the request rises", kind: "Deployment", events: backAndForth("resources", 1, 2)},
		{name: "minAvailable for maxUnavailable", kind: "PodDisruptionBudget", events: backAndForth("bound", 1, 2)},
		{name: "an Ingress backend", kind: "Ingress", events: backAndForth("default backend", 0, 2)},
		{name: "a backend in the rules of an Ingress", kind: "Ingress", events: backAndForth("rules", 1, 3)},
		{name: "a webhook's service for a URL", kind: "ValidatingWebhookConfiguration", events: backAndForth("client", 0, 1)},
		{name: "a conversion's service for a URL", kind: "CustomResourceDefinition", events: backAndForth("conversion", 2, 3)},
		{name: "data for binaryData", kind: "ConfigMap", events: backAndForth("key", 1, 2)},
		{name: "data for stringData", kind: "Secret", events: backAndForth("key", 1, 2)},
		{name: "one metric for another", kind: "HorizontalPodAutoscaler", events: backAndForth("metrics", 1, 3)},
		{name: "an autoscaler of another version", kind: "HorizontalPodAutoscaler/v1", events: backAndForth("version", 0, 2)},
		{name: "one peer of a policy for another", kind: "NetworkPolicy", events: backAndForth("ingress", 1, 2)},
		{name: "actions that exclude each other", kind: "ValidatingAdmissionPolicyBinding", events: backAndForth("actions", 0, 1)},
		{name: "a queue for a rejection", kind: "PriorityLevelConfiguration", events: backAndForth("response", 1, 0)},
		{name: "one of a custom union for the other", kind: "Strict", events: backAndForth("one", 1, 2)},
		{name: "elements of a short list", kind: "Strict", events: backAndForth("short list", 1, 2)},
	}
}

// remainders are changes in whose way a field is that the template does not state.
func remainders() []row {
	return []row{
		{name: "Recreate beside the defaults of a rolling update", kind: "Deployment", events: backAndForth("strategy", 0, 1)},
		{name: "OnDelete beside the defaults of a rolling update", kind: "StatefulSet", events: backAndForth("update strategy", 0, 1)},
		{name: "OnDelete of a DaemonSet", kind: "DaemonSet", events: backAndForth("update strategy", 3, 1)},
		{name: "a mode that excludes a default", kind: "Strict", events: backAndForth("mode", 1, 3)},
		{name: "a port number by hand", kind: "Service", events: []event{then(), by("edit", "ports", 1), then("ports", 2)}},
		{name: "a port number by hand, before an upgrade", kind: "Service", events: []event{then(), meanwhile("edit", "ports", 1), then("ports", 2)}},
		{name: "a protocol by hand", kind: "Service", events: []event{then(), by("patch", "ports", 4), then("selector", 1)}},
		{name: "a container port by hand", kind: "Deployment", events: []event{then("ports", 1), by("edit", "ports", 2), then("ports", 3)}},
		{name: "a variable by hand", kind: "Deployment", events: []event{then("env", 1), by("edit", "env", 2), then("env", 3)}},
		{name: "the other form of a variable by hand, before it is stated", kind: "Deployment", events: []event{then(), by("set", "env", 1), then("env", 2)}},
		{name: "a probe handler by hand", kind: "DaemonSet", events: []event{then("readiness", 1), by("edit", "readiness", 3), then("readiness", 4)}},
		{name: "a probe handler by hand, before another one is stated", kind: "DaemonSet", events: []event{then(), by("set", "readiness", 3), then("readiness", 1)}},
		{name: "a probe handler by hand with more fields", kind: "CronJob", events: []event{then(), by("patch", "readiness", 5), then("readiness", 4)}},
		{name: "a period by hand when the probe leaves", kind: "Deployment", events: []event{then("liveness", 1), by("edit", "probe period", 1), then()}},
		{name: "a volume by hand", kind: "Deployment", events: []event{then("volume", 1), by("patch", "volume", 6), then("volume", 5)}},
		{name: "an authority in a conversion that leaves", kind: "CustomResourceDefinition", events: []event{then("conversion", 2), by("patch", "injected authority", 1), then()}},
		{name: "an authority in a webhook whose client is exchanged", kind: "MutatingWebhookConfiguration", events: []event{then(), by("patch", "injected authority", 1), then("client", 1)}},
		{name: "a budget by hand", kind: "PodDisruptionBudget", events: []event{then("bound", 1), by("edit", "bound", 2), then("bound", 3)}},
		{name: "an emptied map of a free resource", kind: "Free", events: backAndForth("policy", 1, 2)},
		{name: "an emptied map deep in a free resource", kind: "Free", events: backAndForth("deep", 3, 2)},
		{name: "an emptied list of a free resource", kind: "Free", events: backAndForth("list", 1, 2)},
		{name: "an emptied map of a custom resource", kind: "Strict", events: backAndForth("map", 1, 2)},
		{name: "an emptied list of a custom resource", kind: "Strict", events: backAndForth("list map", 1, 2)},
		{name: "an emptied set", kind: "Strict", events: backAndForth("set", 1, 3)},
		{name: "an emptied security context", kind: "Deployment", events: backAndForth("security", 1, 2)},
		{name: "an emptied strategy", kind: "StatefulSet", events: backAndForth("update strategy", 3, 4)},
		{name: "what others filled, a version empties and the next one drops", kind: "Free", events: []event{then(), by("edit", "policy", 1), then("policy", 3), then()}},
		{name: "the same in a custom resource", kind: "Strict", events: []event{then(), by("patch", "map", 1), then("map", 2), then()}},
		{name: "the same in a template of pods", kind: "PodTemplate", events: []event{then(), by("set", "affinity", 1), then("affinity", 3), then()}},
		{name: "the same after a restart", kind: "Strict", events: []event{then(), by("edit", "list map", 1), then("list map", 2), restarted, then()}},
		{name: "a reference of others stays when a volume gives way", kind: "DaemonSet", events: []event{
			then(), meanwhile("set", "volume", 9), by("edit", "pull secrets", 2), then("volume", 8, "pull secrets", 1),
		}},
		{name: "sidecars and labels of others stay", kind: "Deployment", events: []event{
			then("env", 1), by("edit", "foreign sidecar", 1), by("edit", "foreign labels", 1), by("set", "foreign env", 1), then("env", 2), restarted, then("strategy", 1),
		}},
	}
}

// controllers returns histories with fields that a controller writes, regardless of the template.
func controllers() []row {
	return []row{
		{name: "aggregated rules", kind: "ClusterRole/aggregated", events: []event{then(), by("edit", "aggregated", 1), then("selectors", 1)}},
		{name: "aggregated rules that the template states as empty", kind: "ClusterRole/aggregated", events: []event{
			then("rules", 1), by("edit", "aggregated", 1), restarted, then("rules", 1, "selectors", 1),
		}},
		{name: "aggregated rules leave with the aggregation", kind: "ClusterRole/left", events: []event{then("aggregation", 1), by("edit", "aggregated", 1), then()}},
		{name: "an aggregation takes the place of the rules of another tool", kind: "ClusterRole/left", origin: "kubectl apply", version: with("aggregation", 2), events: []event{then("aggregation", 1)}},
		{name: "aggregated rules are exchanged for others", kind: "ClusterRole/left", events: []event{then("aggregation", 1), by("edit", "aggregated", 1), then("aggregation", 2)}},
	}
}

// leavings are fields that leave the template, with their content.
func leavings() []row {
	return []row{
		{name: "the account of pods", kind: "Deployment", strict: true, events: backAndForth("account", 1, 0)},
		{name: "egress to everywhere", kind: "NetworkPolicy", strict: true, events: backAndForth("egress", 3, 4)},
		{name: "egress, and with it its type", kind: "NetworkPolicy", strict: true, events: backAndForth("egress", 3, 0)},
		{name: "the target of an autoscaler", kind: "HorizontalPodAutoscaler/v1", strict: true, events: backAndForth("target", 1, 0)},
		{name: "a headless Service", kind: "Service", events: backAndForth("type", 5, 0)},
		{name: "two families of addresses", kind: "Service", events: backAndForth("families", 2, 0)},
		{name: "node ports", kind: "Service", strict: true, events: backAndForth("type", 1, 0)},
		{name: "the host's network and its ports", kind: "Deployment", strict: true, events: []event{then("ports", 1, "host", 1), then("ports", 1)}},
		{name: "a security context", kind: "StatefulSet", strict: true, events: backAndForth("pod security", 1, 0)},
		{name: "a list of a custom resource that was created empty", kind: "Strict", strict: true, events: backAndForth("set", 3, 0)},
		{name: "a key that was corrected once", kind: "ConfigMap", strict: true, events: []event{then("key", 1), by("patch", "key", 3), then()}},
		{name: "keys of a Secret", kind: "Secret", strict: true, events: backAndForth("other keys", 3, 0)},
	}
}

// drifts are edits of empty maps and of defaults.
func drifts() []row {
	return []row{
		{name: "an empty directory becomes a path of the host", kind: "Deployment", events: []event{then("volume", 1), by("patch", "volume", 6)}},
		{name: "the same while the engine is away", kind: "Deployment", events: []event{then("volume", 1), meanwhile("patch", "volume", 6), restarted}},
		{name: "an issuer", kind: "Free", events: []event{then("issuer", 1), by("edit", "issuer", 2)}},
		{name: "an issuer while the engine is away", kind: "Free", events: []event{then("issuer", 1), meanwhile("edit", "issuer", 2), restarted}},
		{name: "an empty map is filled", kind: "Free", events: []event{then("issuer", 1), by("edit", "foreign", 2)}},
		{name: "an empty map is removed", kind: "Free", events: []event{then("policy", 2), by("edit", "policy", 0)}},
		{name: "an empty selector is filled", kind: "NetworkPolicy", events: []event{then(), by("patch", "selector", 1)}},
		{name: "a protocol that is left out", kind: "Service", events: []event{then(), by("patch", "ports", 4)}},
		{name: "a protocol that is left out, while the engine is away", kind: "Service", events: []event{then(), meanwhile("patch", "ports", 4), restarted}},
		{name: "a map is replaced by null", kind: "Free", events: []event{then("spec", 1), by("patch", "spec", 2)}},
		{name: "an empty list becomes a map", kind: "Free", events: []event{then("deep", 4), by("edit", "deep", 1)}},
		{name: "an empty map is removed while the engine is away", kind: "RuntimeClass", events: []event{then("scheduling", 3), meanwhile("edit", "scheduling", 0), restarted}},
		{name: "a key in another form while the engine is away", kind: "ConfigMap", events: []event{then("key", 3), meanwhile("set", "key", 2), restarted}},
		{name: "an element of a list that is one value", kind: "CustomResourceDefinition", events: []event{then(), by("edit", "subresources", 1)}},
		{name: "the same while the engine is away", kind: "CustomResourceDefinition", events: []event{then(), meanwhile("patch", "subresources", 1), restarted}},
		{name: "the same before an upgrade", kind: "CustomResourceDefinition", events: []event{then(), meanwhile("set", "subresources", 1), then("columns", 1)}},
		{name: "an empty list of a custom resource is filled", kind: "Strict", events: []event{then("list map", 2), by("patch", "list map", 1)}},
	}
}

// recreations returns changes of immutable fields, in objects that allow to be recreated.
func recreations() []row {
	return []row{
		{name: "a container is added", kind: "Pod", events: backAndForth("second container", 0, 1)},
		{name: "a deadline leaves", kind: "Pod", events: backAndForth("deadline", 1, 0)},
		{name: "a scheduling gate is added", kind: "Pod", events: backAndForth("gates", 0, 1)},
		{name: "a volume of a Pod", kind: "Pod", events: backAndForth("volume", 1, 5)},
		{name: "a headless Service is recreated", kind: "Service/recreated", strict: true, events: backAndForth("type", 1, 0)},
		{name: "a template of a Job", kind: "Job/recreated", events: backAndForth("image", 0, 1)},
		{name: "a rule with a message of its own", kind: "Strict/recreated", events: backAndForth("immutable", 0, 1)},
	}
}

// adoptions are objects that another tool has created.
func adoptions() []row {
	var all []row
	for _, origin := range origins[1:] {
		all = append(all,
			row{name: "a custom resource with an empty spec, by " + origin, kind: "Strict", origin: origin, version: with("spec", 1), events: []event{then("spec", 1), then("map", 1)}},
			row{name: "an empty behavior, by " + origin, kind: "HorizontalPodAutoscaler", origin: origin, version: with("behavior", 1), events: []event{then("behavior", 1), then("behavior", 2)}},
			row{name: "a key of a Secret that leaves, by " + origin, kind: "Secret", origin: origin, version: with("other keys", 3), events: []event{then("other keys", 1), then("key", 2)}},
			row{name: "a port number, by " + origin, kind: "Service", origin: origin, version: with(), events: []event{then("ports", 1), then("ports", 2)}},
			row{name: "an environment variable, by " + origin, kind: "Deployment", origin: origin, version: with("env", 1), events: []event{then("env", 2), then("env", 1)}},
			row{name: "Recreate, by " + origin, kind: "Deployment", origin: origin, version: with(), events: []event{then("strategy", 1), then()}},
			row{name: "an immutable field that leaves with others, by " + origin, kind: "Job/recreated", origin: origin, version: with("labels", 2, "completions", 1), events: []event{then("annotations", 1)}},
			row{name: "quotas beside an immutable field, by " + origin, kind: "ResourceQuota", origin: origin, version: with("scopes", 1, "annotations", 1), events: []event{then()}},
			row{name: "a headless Service, by " + origin, kind: "Service", origin: origin, version: with("type", 5), events: []event{then()}},
			row{name: "an empty list, by " + origin, kind: "Strict", origin: origin, version: with("list map", 2), events: []event{then(), then("map", 1)}},
			row{name: "an empty set that leaves, by " + origin, kind: "Strict", origin: origin, version: with("set", 3), events: []event{then("set", 3), then()}},
			row{name: "an immutable field that leaves, by " + origin, kind: "PersistentVolumeClaim", origin: origin, version: with("class", 1), events: []event{then()}},
		)
	}
	return all
}

// replicas returns histories whose template drops spec.replicas: its value has to stay.
func replicas() []row {
	return []row{
		{name: "replicas are handed over", kind: "Deployment", events: []event{then("replicas", 2), then("image", 1), then()}},
		{name: "scaled replicas are handed over", kind: "StatefulSet", events: []event{then("replicas", 1), scaled(7), then()}},
		{name: "an autoscaler of the first version at rest", kind: "HorizontalPodAutoscaler/v1", events: []event{then(), restarted, then("bounds", 1), restarted}},
		{name: "replicas that were never stated", kind: "ReplicaSet", events: []event{then(), scaled(4), then("image", 1), restarted}},
		{name: "replicas of a custom resource", kind: "Strict", events: []event{then("replicas", 1), then(), scaled(3), then("map", 1)}},
	}
}
