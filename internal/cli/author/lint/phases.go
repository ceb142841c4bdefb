package lint

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/gates"
	"lockstep.run/lockstep/internal/cli/fields"
)

// webhooks visits all webhooks that fail closed.
func (c *oneCase) webhooks(visit func(o *object, webhook map[string]any, field string)) {
	for _, o := range c.of(validatingKind, mutatingKind) {
		for _, webhook := range fields.Maps(o.Object, "webhooks") {
			if fields.Text(webhook, "failurePolicy") != "Ignore" {
				visit(o, webhook, `webhooks[name="`+fields.Text(webhook, "name")+`"]`)
			}
		}
	}
}

// webhookBeforeBackend reports webhooks in the phase of their backend or in an earlier one.
func webhookBeforeBackend(c *oneCase, r reporter) {
	c.webhooks(func(o *object, webhook map[string]any, field string) {
		name, namespace := fields.Text(webhook, "clientConfig", "service", "name"), fields.Text(webhook, "clientConfig", "service", "namespace")
		for _, service := range c.of(serviceKind) {
			if service.GetName() != name || c.namespaceOf(service) != namespace {
				continue
			}

			for _, backend := range append(gates.Selected(c.objects, service), service) {
				if backend.phase == o.phase && c.completes(o) && c.refused(o) == nil {
					continue
				}
				if backend.phase >= o.phase {
					r.at(o, field, "Put the webhook into a later phase than its backend, and probe the backend.",
						"it is in phase %q, and %s %s, which it needs, in phase %q", o.phaseName, backend.kind.Kind, backend.GetName(), backend.phaseName)
					return
				}
			}
		}
	})
}

// webhookOwnAPIGroup reports webhooks that match the engine's own objects.
func webhookOwnAPIGroup(c *oneCase, r reporter) {
	c.webhooks(func(o *object, webhook map[string]any, field string) {
		// The author decides whether conditions exclude the engine.
		if len(fields.List(webhook, "matchConditions"))+len(fields.Map(webhook, "namespaceSelector"))+len(fields.Map(webhook, "objectSelector")) > 0 {
			return
		}

		for _, rule := range fields.Maps(webhook, "rules") {
			groups, resources := fields.Texts(rule, "apiGroups"), fields.Texts(rule, "resources")
			group := corev1alpha1.GroupName
			if !slices.Contains(groups, group) {
				if !slices.Contains(groups, "*") || !slices.Contains(resources, "*") && !slices.Contains(resources, "*/*") {
					continue
				}
				group = "all API groups"
			}

			r.at(o, field, "Name its API groups, or exclude "+corev1alpha1.GroupName+" by matchConditions, or set failurePolicy: Ignore.",
				"it matches %s", group)
			return
		}
	})
}

// resourceBeforeDefinition reports resources that are not in a later phase than their definition.
func resourceBeforeDefinition(c *oneCase, r reporter) {
	defined := map[schema.GroupKind]*object{}
	for _, o := range c.of(crdKind) {
		defined[schema.GroupKind{Group: fields.Text(o.Object, "spec", "group"), Kind: fields.Text(o.Object, "spec", "names", "kind")}] = o
	}

	for _, o := range c.objects {
		if crd := defined[o.kind]; crd != nil && crd.phase >= o.phase {
			r.at(o, "", "Put it into a later phase, and probe the definition for the condition Established.",
				"it is in phase %q, and the definition of its kind, %s, in phase %q", o.phaseName, crd.GetName(), crd.phaseName)
		}
	}
}

// namespaceAfterUse reports objects that are not in a later phase than their Namespace.
func namespaceAfterUse(c *oneCase, r reporter) {
	namespaces := map[string]*object{}
	for _, o := range c.of(namespaceKind) {
		namespaces[o.GetName()] = o
	}

	for _, o := range c.objects {
		if ns := namespaces[o.GetNamespace()]; ns != nil && o.GetNamespace() != "" && ns.phase >= o.phase {
			r.at(o, "metadata.namespace", "Put it into a later phase than the Namespace.",
				"it is in phase %q, and its Namespace in phase %q", o.phaseName, ns.phaseName)
		}
	}
}

// presentNamespaces exist in every cluster.
var presentNamespaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

// foreignNamespace reports namespaces that neither the package nor every cluster has, each once.
func foreignNamespace(c *oneCase, r reporter) {
	brought := slices.Clone(presentNamespaces)
	for _, o := range c.of(namespaceKind) {
		brought = append(brought, o.GetName())
	}

	for _, o := range c.objects {
		if ns := o.GetNamespace(); ns != "" && ns != c.namespace && !slices.Contains(brought, ns) {
			brought = append(brought, ns) // one finding for each namespace
			r.at(o, "metadata.namespace", "Add the Namespace in an earlier phase if it belongs to the package. Otherwise state in the README that it has to exist.", "the package does not contain the namespace %q", ns)
		}
	}
}
