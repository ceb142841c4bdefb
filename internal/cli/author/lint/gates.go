package lint

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/gates"
	"lockstep.run/lockstep/internal/loader/presets"
)

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

// completes reports whether a workload in the phase of a webhook configuration might have to
// complete it to become ready, for example with its certificate. In that case no order of phases is
// better.
func (c *oneCase) completes(config *object) bool {
	for _, n := range c.needs() {
		if n.On == config && n.Of.phase == config.phase {
			return true
		}
	}
	return false
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
