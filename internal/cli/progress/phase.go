package progress

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

// Phase is the state of one phase.
type Phase struct {
	Name  string
	State corev1alpha1.PhaseState
	// Ready of Total objects are ready. During a teardown, Ready is the number of absent objects.
	Ready, Total int
	// Deleting means that the package is being deleted. Later means that the deletion has not
	// reached the phase.
	Deleting, Later bool
	// Objects in their order; empty if they are unknown.
	Objects []Object
}

// ObjectState is the state of one object.
type ObjectState int

// States of objects. It is unknown whether a written object is ready.
const (
	ObjectWaiting ObjectState = iota
	ObjectWritten
	ObjectBlocked
	ObjectReady
)

// Object is one object of a phase.
type Object struct {
	// Name with kind, and with the namespace if it is not the package's.
	Name  string
	Group string
	Phase string
	State ObjectState

	// Message is the reason why a blocked object is not ready, and More is the number of further
	// objects with this message.
	Message string
	More    int

	// Remedy is the remedy for a refusal, unless Message includes it.
	Remedy string
}

// phasesOf corrects a status that calls phases torn down although the deletion has not reached
// them.
func phasesOf(status []corev1alpha1.PhaseStatus, deleting bool) []Phase {
	phases := make([]Phase, len(status))
	reached := true

	for i, ph := range slices.Backward(status) {
		// A teardown runs from the last phase to the first. Until it reaches a phase, the status
		// shows the state of the rollout.
		p := Phase{Name: terminal.Line(ph.Name), State: ph.State, Ready: int(ph.Ready), Total: int(ph.Total), Deleting: deleting}
		p.Later = deleting && !reached && p.Ready == 0
		reached = reached && p.Finished()
		phases[i] = p
	}
	return phases
}

// phaseWords are the words for the states of phases.
var phaseWords = map[corev1alpha1.PhaseState]string{
	corev1alpha1.PhaseStateTearingDown: "deleting", corev1alpha1.PhaseStateGone: "gone", corev1alpha1.PhaseStateWaiting: "waiting",
	corev1alpha1.PhaseStateApplying: "applying", corev1alpha1.PhaseStateProbing: "waiting for probes",
	corev1alpha1.PhaseStateReady: "ready", corev1alpha1.PhaseStateUnready: "no longer ready",
}

// TornDown reports whether the deletion has reached the phase.
func (p *Phase) TornDown() bool {
	return p.State == corev1alpha1.PhaseStateTearingDown || p.State == corev1alpha1.PhaseStateGone
}

// Word is the state of the phase in a word or two.
func (p *Phase) Word() string {
	word, known := phaseWords[p.State]
	switch {
	case p.Later, p.Deleting && !p.TornDown():
		return "not yet"
	case !known:
		return "unknown"
	}
	return word
}

// Active reports whether the phase is being rolled out or torn down.
func (p *Phase) Active() bool {
	switch p.State {
	case corev1alpha1.PhaseStateApplying, corev1alpha1.PhaseStateProbing, corev1alpha1.PhaseStateUnready:
		return !p.Later && !p.Deleting
	case corev1alpha1.PhaseStateTearingDown:
		return !p.Later
	}
	return false
}

// Finished reports whether the phase is done.
func (p *Phase) Finished() bool {
	if p.Deleting {
		return p.State == corev1alpha1.PhaseStateGone
	}
	return p.State == corev1alpha1.PhaseStateReady
}

// Count is the number of its finished objects, such as 1/3.
func (p *Phase) Count() string {
	done := p.Ready
	if p.Deleting && !p.TornDown() {
		done = 0
	}
	return fmt.Sprintf("%d/%d", done, p.Total)
}

// blocksNow is false at the start of a deletion, when the status is still about the rollout.
func blocksNow(b corev1alpha1.BlockingObject, phases []corev1alpha1.PhaseStatus, deleting bool) bool {
	i := slices.IndexFunc(phases, func(ph corev1alpha1.PhaseStatus) bool { return ph.Name == b.Phase })
	return !deleting || i < 0 || phases[i].State == corev1alpha1.PhaseStateTearingDown
}

// name is a key without the namespace of the package.
func (s *State) name(k objects.Key) string {
	if k.Namespace == s.Target.Namespace {
		k.Namespace = ""
	}
	return terminal.Line(k.Kind + " " + k.NamespacedName())
}

// fillObjects adds the objects of each phase. complete means that blocked has all blocking objects.
func (s *State) fillObjects(set corev1alpha1.GenericObjectSet, slices map[string][]corev1alpha1.ObjectSetObject, blocked map[objects.Key]string, complete bool) {
	written := map[objects.Key]bool{}
	for _, c := range set.ObjectSetStatus().ControllerOf {
		written[objects.Key{Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}] = true
	}

	namespace := set.ObjectSetSpec().TargetRef.NamespaceOf(s.Target.Namespace)
	for i, ph := range set.ObjectSetSpec().Phases {
		// A set of another revision has other phases than the status.
		if i >= len(s.Phases) || s.Phases[i].Name != terminal.Line(ph.Name) {
			return
		}
		all := ph.Objects
		for _, name := range ph.Slices {
			// The capacity is limited, so that append does not write into the set.
			all = append(all[:len(all):len(all)], slices[name]...)
		}

		for _, raw := range all {
			var value map[string]any
			if json.Unmarshal(raw.Object.Raw, &value) != nil {
				continue
			}
			key := objectdiff.KeyOf(value, namespace)
			obj := Object{Name: s.name(key), Group: terminal.Line(key.Group), Phase: s.Phases[i].Name}
			message, isBlocked := blocked[key]
			switch {
			case s.Phases[i].State == corev1alpha1.PhaseStateReady:
				obj.State = ObjectReady
			case isBlocked:
				obj.State, obj.Message = ObjectBlocked, message
			// With a truncated list, a written object might also be blocking.
			case written[key] && complete:
				obj.State = ObjectReady
			case written[key]:
				obj.State = ObjectWritten
			}

			s.Phases[i].Objects = append(s.Phases[i].Objects, obj)
		}
	}
}
