package gates

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/fields"
)

// Object is an object of a package.
type Object interface {
	comparable
	// Content is the object as JSON.
	Content() map[string]any
	// Home is the namespace that the object is created in.
	Home() string
}

// Need means that the probe of an object can become true only after another object of the package
// exists.
type Need[O Object] struct {
	Of, On O
	// Why completes "OF … ON", such as "mounts".
	Why string
}

// workloads are the kinds with pods. Their probes wait for the pods.
var workloads = []schema.GroupKind{
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"}, {Group: "apps", Kind: "ReplicaSet"},
	{Kind: "ReplicationController"}, {Kind: "Pod"}, {Group: "batch", Kind: "Job"},
}

// KindOf returns the kind of an object.
func KindOf[O Object](o O) schema.GroupKind {
	gv, _ := schema.ParseGroupVersion(fields.Text(o.Content(), "apiVersion"))
	return gv.WithKind(fields.Text(o.Content(), "kind")).GroupKind()
}

// nameOf returns the name of an object.
func nameOf[O Object](o O) string { return fields.Text(o.Content(), "metadata", "name") }

// is reports whether an object is of a kind.
func is[O Object](o O, group, kind string) bool {
	return KindOf(o) == schema.GroupKind{Group: group, Kind: kind}
}

// hasPods reports whether a kind has pods.
func hasPods[O Object](o O) bool { return slices.Contains(workloads, KindOf(o)) }

// Needs returns the needs of the objects' probes, in the order of the objects.
func Needs[O Object](all []O) []Need[O] {
	defined := Defined(all)
	var out []Need[O]
	for _, o := range all {
		out = append(out, needsOf(all, o, defined)...)
	}
	return out
}

// needsOf returns the needs of an object, given the kinds that the package defines.
func needsOf[O Object](all []O, o O, defined map[schema.GroupKind]bool) (out []Need[O]) {
	add := func(why string, on ...O) {
		for _, other := range on {
			if other != o {
				out = append(out, Need[O]{Of: o, On: other, Why: why})
			}
		}
	}

	switch kind := KindOf(o); {
	case hasPods(o):
		if kind.Kind != "Job" { // the command line decides what a Job patches
			add("has the right to write", Written(all, o)...)
		}
		references(all, o, func(why string, on O) { add(why, on) })
		for _, s := range all {
			if is(s, "", "Service") && Calls(o, s) {
				add("calls", Selected(all, s)...)
			}
		}
	case kind == schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		add("is served by", servers(all, fields.Map(o.Content(), "spec", "service"))...)
	case kind == schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		// A claim that is bound for its first consumer waits for that consumer. With several, any
		// of them suffices.
		if users := usersOf(all, o); len(users) == 1 {
			add("is bound only for", users...)
		}
	case defined[kind]:
		add("gets its status from", Controllers(all, o)...)
	}

	return out
}

// Defined returns the kinds that the objects define.
func Defined[O Object](all []O) map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for _, o := range all {
		if is(o, "apiextensions.k8s.io", "CustomResourceDefinition") {
			out[schema.GroupKind{Group: fields.Text(o.Content(), "spec", "group"), Kind: fields.Text(o.Content(), "spec", "names", "kind")}] = true
		}
	}
	return out
}

// used visits the objects that the pods of an object cannot start without, by kind and name.
func used(content map[string]any, visit func(kind schema.GroupKind, name, why string)) {
	configMap, secret := schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Kind: "Secret"}
	pod, _ := fields.PodSpec(content)
	see := func(kind schema.GroupKind, from any, field, why string) {
		// An optional reference does not keep the pods from starting.
		if name := fields.Text(from, field); name != "" && !fields.Bool(from, "optional") {
			visit(kind, name, why)
		}
	}

	see(schema.GroupKind{Kind: "ServiceAccount"}, pod, "serviceAccountName", "runs as")
	see(schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}, pod, "priorityClassName", "names")
	see(schema.GroupKind{Group: "node.k8s.io", Kind: "RuntimeClass"}, pod, "runtimeClassName", "names")
	for _, volume := range fields.Maps(pod, "volumes") {
		see(configMap, volume["configMap"], "name", "mounts")
		see(secret, volume["secret"], "secretName", "mounts")
		see(schema.GroupKind{Kind: "PersistentVolumeClaim"}, volume["persistentVolumeClaim"], "claimName", "mounts")
		for _, source := range fields.Maps(volume, "projected", "sources") {
			see(configMap, source["configMap"], "name", "mounts")
			see(secret, source["secret"], "name", "mounts")
		}
	}

	fields.Containers(content, func(_, _ string, c map[string]any) {
		for _, from := range fields.Maps(c, "envFrom") {
			see(configMap, from["configMapRef"], "name", "reads")
			see(secret, from["secretRef"], "name", "reads")
		}
		for _, e := range fields.Maps(c, "env") {
			see(configMap, fields.Get(e, "valueFrom", "configMapKeyRef"), "name", "reads")
			see(secret, fields.Get(e, "valueFrom", "secretKeyRef"), "name", "reads")
		}
	})
}

// references visits the objects that the pods of an object cannot start without. If a controller
// makes one of their Secrets, it visits the object that names the Secret, such as a Certificate.
func references[O Object](all []O, o O, visit func(why string, on O)) {
	used(o.Content(), func(kind schema.GroupKind, name, why string) {
		found := false
		for _, other := range all {
			if KindOf(other) == kind && nameOf(other) == name && (other.Home() == o.Home() || other.Home() == "") {
				found = true
				visit(why, other)
			}
		}

		// A Secret can be made by a controller from a custom resource.
		if found || kind.Kind != "Secret" {
			return
		}

		for _, other := range all {
			if strings.Contains(KindOf(other).Group, ".") && other.Home() == o.Home() && makesSecret(other.Content(), name) {
				visit(why+" a Secret of", other)
			}
		}
	})
}

// makesSecret reports whether a custom resource names a Secret as the one that its controller
// makes.
func makesSecret(content map[string]any, name string) bool {
	made := cmp.Or(fields.Text(content, "spec", "secretName"), fields.Text(content, "spec", "target", "name"))
	if kind := fields.Text(content, "kind"); made == "" && (kind == "SealedSecret" || kind == "ExternalSecret") {
		made = fields.Text(content, "metadata", "name")
	}
	return made == name
}

// usersOf returns the objects whose pods use a claim.
func usersOf[O Object](all []O, claim O) []O {
	return Filter(all, func(o O) bool {
		uses := false
		if hasPods(o) && o.Home() == claim.Home() {
			used(o.Content(), func(kind schema.GroupKind, name, _ string) {
				uses = uses || kind == KindOf(claim) && name == nameOf(claim)
			})
		}
		return uses
	})
}

// Filter returns the objects to keep.
func Filter[O Object](all []O, keep func(O) bool) []O {
	return slices.DeleteFunc(slices.Clone(all), func(o O) bool { return !keep(o) })
}

// writable are the resources of kinds that a controller completes after their creation, for example
// with the certificate of a webhook.
var writable = map[schema.GroupKind]string{
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: "validatingwebhookconfigurations",
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   "mutatingwebhookconfigurations",
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               "customresourcedefinitions",
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           "apiservices",
}

// Written returns the objects of the package that a controller has to complete and that the pods of
// an object can write, by a rule that names their resource.
func Written[O Object](all []O, o O) (out []O) {
	for _, rule := range rules(all, o) {
		if grants(rule, "verbs", "patch", "update", "*") {
			out = append(out, Filter(all, func(target O) bool {
				kind := KindOf(target)
				resource := writable[kind]
				named := len(fields.List(rule, "resourceNames")) == 0 || grants(rule, "resourceNames", nameOf(target))
				return resource != "" && named && grants(rule, "apiGroups", kind.Group, "*") && grants(rule, "resources", resource) && !slices.Contains(out, target)
			})...)
		}
	}
	return out
}

// Controllers returns the workloads that can watch the kind of a resource.
func Controllers[O Object](all []O, resource O) []O {
	return Filter(all, func(o O) bool { return hasPods(o) && KindOf(o).Kind != "Job" && Controls(all, o, resource) })
}

// Controls reports whether the pods of an object can watch one of the resources, judged by their
// groups.
func Controls[O Object](all []O, o O, resources ...O) bool {
	return slices.ContainsFunc(rules(all, o), func(rule any) bool {
		return grants(rule, "verbs", "watch", "*") && slices.ContainsFunc(resources, func(r O) bool { return grants(rule, "apiGroups", KindOf(r).Group, "*") })
	})
}

// grants reports whether a field of a rule has one of the values.
func grants(rule any, field string, values ...string) bool {
	return slices.ContainsFunc(fields.List(rule, field), func(item any) bool {
		return slices.Contains(values, fields.Text(item))
	})
}

// Account returns the ServiceAccount of an object's pods.
func Account[O Object](o O) string {
	pod, _ := fields.PodSpec(o.Content())
	return cmp.Or(fields.Text(pod, "serviceAccountName"), fields.Text(pod, "serviceAccount"), "default")
}

// rules returns the rules that the roles of the package grant to the pods of an object.
func rules[O Object](all []O, o O) (out []any) {
	const group = "rbac.authorization.k8s.io"
	// In a package for any namespace, the namespace of a subject can be an expression instead of a text.
	bound := func(s any) bool {
		return fields.Text(s, "kind") == "ServiceAccount" && fields.Text(s, "name") == Account(o) && fields.Text(s, "namespace") == o.Home()
	}

	for _, binding := range all {
		of := KindOf(binding)
		if of.Group != group || !strings.HasSuffix(of.Kind, "RoleBinding") || !slices.ContainsFunc(fields.List(binding.Content(), "subjects"), bound) {
			continue
		}
		kind, name := fields.Text(binding.Content(), "roleRef", "kind"), fields.Text(binding.Content(), "roleRef", "name")
		for _, role := range all {
			if is(role, group, kind) && nameOf(role) == name && (kind == "ClusterRole" || kind == "Role" && role.Home() == binding.Home()) {
				out = append(out, fields.List(role.Content(), "rules")...)
			}
		}
	}
	return out
}
