package gates

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/fields"
)

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
