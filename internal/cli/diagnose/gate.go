package diagnose

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/gates"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/loader/presets"
	"lockstep.run/lockstep/internal/objects"
)

// gatePatience is after what time a phase is said to wait for what may never come: a workload may write an object of a later
// phase without waiting for it.
const gatePatience = time.Minute

// gated is an object of the revision.
type gated struct {
	objectdiff.Object
	phase int
}

// Content implements gates.Object.
func (g *gated) Content() map[string]any { return g.Value }

// Home implements gates.Object.
func (g *gated) Home() string { return g.Key.Namespace }

// gate says why an object that is not ready may never become so: it needs what a later phase brings.
func (e *explainer) gate(ctx context.Context, key objects.Key) ([]finding, error) {
	if e.set == nil || time.Since(e.set.GetCreationTimestamp().Time) < gatePatience {
		return nil, nil
	}
	all, err := cluster.ReadObjects(ctx, e.home, e.set)
	if err != nil {
		return nil, readable("the newest revision", err)
	}
	return gateFindings(key, all, e.set.ObjectSetSpec().Phases), nil
}

func gateFindings(key objects.Key, all []objectdiff.Object, phases []corev1alpha1.ObjectSetTemplatePhase) []finding {
	of := func(object, text, remedy string) []finding {
		return []finding{{
			link:  Link{Object: object, State: "may never come", Message: text},
			cause: cause{weight: weightPod, reason: ReasonGate, object: short(key), text: text, remedy: remedy},
		}}
	}
	var known []*gated
	for _, o := range all {
		i := slices.IndexFunc(phases, func(p corev1alpha1.ObjectSetTemplatePhase) bool { return p.Name == o.Phase })
		known = append(known, &gated{Object: o, phase: i})
	}
	at := slices.IndexFunc(known, func(g *gated) bool { return g.Key == key })
	if at < 0 {
		return nil
	}
	for _, n := range gates.NeedsOf(known, known[at]) {
		if n.On.phase > n.Of.phase {
			return of(short(n.On.Key), fmt.Sprintf("%s is not ready, and it %s %s of the later phase %s, which is written only when the phase %s is complete",
				short(key), n.Why, short(n.On.Key), n.On.Phase, n.Of.Phase), "Put both into one phase of the package; kubectl package lint names all of these.")
		}
	}
	if gates.Defined(known)[key.GroupKind()] && !presets.Probed(key.GroupKind()) {
		return of("status of "+short(key), short(key)+" is of a kind of the package itself, and its controller has not set what its probe waits for; it may do so in some configurations alone",
			"See the log of the controller; where the status never comes, remove the availability probe from the package.")
	}
	return nil
}
