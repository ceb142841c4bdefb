package lint

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/gates"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/loader/presets"
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

			// A workload in the phase of the webhook might have to complete it to become ready, for example with its
			// certificate. No order of phases is better then.
			completed := slices.ContainsFunc(c.needs(), func(n gates.Need[*object]) bool { return n.On == o && n.Of.phase == o.phase })
			for _, backend := range append(gates.Selected(c.objects, service), service) {
				if backend.phase == o.phase && completed && c.refused(o) == nil {
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

// needs returns the needs of the probes in the case.
func (c *oneCase) needs() []gates.Need[*object] {
	if c.gates == nil {
		c.gates = gates.Needs(c.objects)
	}
	return c.gates
}

// phaseNeverComplete reports phases whose probe waits for an object of a later phase.
func phaseNeverComplete(c *oneCase, r reporter) {
	for _, n := range c.needs() {
		if n.On.phase > n.Of.phase && c.probed(n.Of) {
			r.at(n.Of, "", "Put both into one phase, or this into a later one.",
				"the phase %q waits for it, and it %s %s %s of the later phase %q", n.Of.phaseName, n.Why, n.On.kind.Kind, n.On.GetName(), n.On.phaseName)
		}
	}
}

// customResourceProbe reports probes that wait for the status of the package's own resources.
func customResourceProbe(c *oneCase, r reporter) {
	defined := gates.Defined(c.objects)
	for i, probe := range c.manifest.Spec.AvailabilityProbes {
		if probe.Selector.Kind == nil {
			continue
		}
		kind := schema.GroupKind{Group: probe.Selector.Kind.Group, Kind: probe.Selector.Kind.Kind}
		// Kinds with a built-in probe have a status that is always set.
		if !defined[kind] || presets.Probed(kind) {
			continue
		}

		for _, o := range c.objects {
			if selects(probe.Selector, o) {
				r.manifest(fmt.Sprintf("spec.availabilityProbes[%d]", i), "Remove the probe if no controller sets the status, or disable the rule if one always does.",
					"the phase %q waits for %s %s, whose kind the package defines", o.phaseName, o.kind.Kind, o.GetName())
			}
		}
	}
}

// refused returns an object that is in the phase of a webhook configuration and that its webhooks
// match.
func (c *oneCase) refused(config *object) *object {
	for _, o := range c.objects {
		if o != config && o.phase == config.phase && gates.Rejects(config, o) {
			return o
		}
	}
	return nil
}
