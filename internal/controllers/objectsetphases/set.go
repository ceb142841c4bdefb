package objectsetphases

import (
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// phaseSet presents an ObjectSetPhase to the reconciler, as a lone set with one phase.
// The metadata is the ObjectSetPhase's; spec and status are copies.
type phaseSet struct {
	corev1alpha1.GenericObjectSetPhase
	spec   corev1alpha1.ObjectSetSpec
	status corev1alpha1.ObjectSetStatus
	// leaving means that the set that made it is being deleted or archived, and makerless that the
	// set no longer exists.
	leaving, makerless bool
	// reportDrift means that the deployment of that set leaves drift as it is.
	reportDrift bool
}

var errMakerless = errors.New("the ObjectSet that it belongs to does not exist: take metadata.ownerReferences off to keep the phase, or delete it")

// newPhaseSet returns phase as a set. target is the cluster of its objects; nil for the cluster of
// our own kinds.
func newPhaseSet(phase corev1alpha1.GenericObjectSetPhase, target *corev1alpha1.TargetReference) *phaseSet {
	spec, status := phase.ObjectSetPhaseSpec(), phase.ObjectSetPhaseStatus().DeepCopy()
	name := phaseName(phase)
	s := &phaseSet{
		GenericObjectSetPhase: phase,
		spec: corev1alpha1.ObjectSetSpec{
			LifecycleState: corev1alpha1.ObjectSetLifecycleStateActive, Revision: spec.Revision, Previous: spec.Previous,
			ObjectSetTemplateSpec: corev1alpha1.ObjectSetTemplateSpec{
				Phases:             []corev1alpha1.ObjectSetTemplatePhase{{Name: name, Objects: spec.Objects}},
				AvailabilityProbes: spec.AvailabilityProbes, TargetRef: target,
			},
		},
		status: corev1alpha1.ObjectSetStatus{
			Conditions: status.Conditions, ObservedGeneration: status.ObservedGeneration, ControllerOf: status.ControllerOf, Blocking: status.Blocking,
		},
	}

	if target == nil {
		s.spec.ServiceAccountName = phase.GetAnnotations()[corev1alpha1.ServiceAccountAnnotation]
	}
	if spec.Paused {
		s.spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStatePaused
	}
	if status.ObservedGeneration > 0 {
		s.status.Revision = spec.Revision
	}
	if status.State != "" {
		s.status.Phases = []corev1alpha1.PhaseStatus{{Name: name, State: status.State, Ready: status.ReadyObjects, Total: status.TotalObjects}}
	}

	return s
}

// Object returns the ObjectSetPhase.
func (p *phaseSet) Object() corev1alpha1.Conditioned { return p.GenericObjectSetPhase }

// Held reports whether only the removal is written, because the set that made it is being removed
// or no longer exists. problem is the reason if a user has to fix that.
func (p *phaseSet) Held() (held bool, problem error) {
	if p.makerless {
		return true, errMakerless
	}
	return p.leaving, nil
}

// ReportsDrift reports whether the deployment of the set that made it leaves drift as it is.
func (p *phaseSet) ReportsDrift() bool { return p.reportDrift }

// ObjectSetSpec returns the spec of the set.
func (p *phaseSet) ObjectSetSpec() *corev1alpha1.ObjectSetSpec { return &p.spec }

// ObjectSetStatus returns the status of the set for reading and writing.
func (p *phaseSet) ObjectSetStatus() *corev1alpha1.ObjectSetStatus { return &p.status }

// StatusConditions returns the status conditions for reading and writing.
func (p *phaseSet) StatusConditions() *[]metav1.Condition { return &p.status.Conditions }

// DeepCopyObject returns a copy of the set.
func (p *phaseSet) DeepCopyObject() runtime.Object {
	return &phaseSet{
		GenericObjectSetPhase: p.GenericObjectSetPhase.DeepCopyObject().(corev1alpha1.GenericObjectSetPhase),
		spec:                  *p.spec.DeepCopy(), status: *p.status.DeepCopy(),
		leaving: p.leaving, makerless: p.makerless, reportDrift: p.reportDrift,
	}
}

// Flush puts the status of the set on the ObjectSetPhase.
func (p *phaseSet) Flush() {
	status := corev1alpha1.ObjectSetPhaseStatus{
		Conditions: p.status.Conditions, ObservedGeneration: p.status.ObservedGeneration, ControllerOf: p.status.ControllerOf, Blocking: p.status.Blocking,
	}
	if len(p.status.Phases) > 0 {
		phase := p.status.Phases[0]
		status.State, status.ReadyObjects, status.TotalObjects = phase.State, phase.Ready, phase.Total
	}
	*p.ObjectSetPhaseStatus() = *status.DeepCopy()
}

// phaseKey returns an ObjectSetPhase as an owner.
func phaseKey(phase metav1.Object) objects.OwnerKey {
	return objects.OwnerKey{
		Kind: corev1alpha1.ScopeOf(phase.GetNamespace()).Kind("ObjectSetPhase"), Namespace: phase.GetNamespace(), Name: phase.GetName(),
	}
}

// setOfPhase returns the reference to the set that made an ObjectSetPhase; nil if a user wrote it.
func setOfPhase(phase metav1.Object) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(phase)
	if ref == nil || !objectsets.Ours(ref) || ref.Kind != corev1alpha1.ScopeOf(phase.GetNamespace()).Kind("ObjectSet") {
		return nil
	}
	return ref
}

// phaseName returns the name of the phase in its set, or else the name of the ObjectSetPhase.
func phaseName(phase metav1.Object) string {
	if set := setOfPhase(phase); set != nil {
		if name, is := strings.CutPrefix(phase.GetName(), set.Name+"-"); is && name != "" {
			return name
		}
	}
	return phase.GetName()
}
