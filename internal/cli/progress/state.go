package progress

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

// Snapshot is what the API server showed at one moment.
type Snapshot struct {
	Target Target
	// Package is nil when there is none any more.
	Package corev1alpha1.GenericPackage
	// Set is the newest revision that is not archived; nil where there is none or
	// where it may not be read.
	Set corev1alpha1.GenericObjectSet
	// Slices are the objects of the slices that Set names; those that are missing
	// are just not shown.
	Slices map[string][]corev1alpha1.ObjectSetObject
	// Lost says why the connection to the API server is lost; empty while it
	// works.
	Lost string
}

// State is how a package stands.
type State struct {
	Target Target
	// Gone: there is no such package any more. Deleting: it is on its way.
	Gone, Deleting bool
	// Noticed: a manager has put its finalizer on. Observed: it has reported on the
	// spec at hand. Unnoticed: it has not for longer than UnnoticedAfter; Of does
	// not know the time and leaves it unset.
	Noticed, Observed, Unnoticed bool
	// Image of the spec.
	Image string
	// Unpacked: the image was pulled. Package, Version and Digest say what is in
	// it.
	Unpacked                 bool
	Package, Version, Digest string
	// Ignored are the parts of the package that have no effect.
	Ignored []string
	// PullError and Invalid say why the image cannot be installed; empty where it
	// can.
	PullError, Invalid string
	// Paused, Stalled and Unavailable are the messages of those conditions; empty
	// where they do not hold.
	Paused, Stalled, Unavailable string
	// Retried is the last retry that the manager has handled.
	Retried string
	// Available: it works, in this revision or the one before. RolledOut: the
	// revision at hand was complete once. Ready: everything is as the spec asks
	// for.
	Available, RolledOut, Ready bool
	// Revision, its phases in their order, and what blocks them.
	Revision int64
	Phases   []Phase
	Blocking []Object
	// Finalizers are those that are neither the engine's nor the garbage
	// collector's.
	Finalizers []string
	Lost       string
}

// Phase is how one phase stands.
type Phase struct {
	Name  string
	State corev1alpha1.PhaseState
	// Ready of Total objects are ready; while the phase is torn down, gone.
	Ready, Total int
	// Later: a deletion has not reached it.
	Later bool
	// Objects in their order; empty where they are not known.
	Objects []Object
}

// ObjectState is how far an object is.
type ObjectState int

const (
	// ObjectWaiting was not written yet.
	ObjectWaiting ObjectState = iota
	// ObjectWritten was written; whether it is ready is not known.
	ObjectWritten
	// ObjectBlocked holds its phase up.
	ObjectBlocked
	// ObjectReady passes its probes.
	ObjectReady
)

// Object is how one object stands.
type Object struct {
	// Name with kind and namespace, such as "Deployment shop/web". The namespace
	// is left out where it is the package's own.
	Name  string
	Group string
	Phase string
	State ObjectState
	// Message says what a blocked object lacks.
	Message string
	// others is how many more objects share the message.
	others int
}

// Before makes a State of what was there before a change: as Of, but with the
// phases of the revision that is there, whatever the image of the spec is.
func Before(snap Snapshot) State {
	s := Of(snap)
	if snap.Package != nil && len(s.Phases) == 0 {
		s.fromRevision(snap)
	}
	return s
}

// Ended is the State of a package that is gone, with its phases as far as they
// were being torn down when it was last seen.
func Ended(last State) State {
	s := State{Target: last.Target, Gone: true, Deleting: true}
	for _, ph := range last.Phases {
		if !last.Deleting || ph.State != corev1alpha1.PhaseStateTearingDown && ph.State != corev1alpha1.PhaseStateGone {
			s.Phases = nil
			break
		}
		ph.State, ph.Ready, ph.Objects = corev1alpha1.PhaseStateGone, ph.Total, nil
		s.Phases = append(s.Phases, ph)
	}
	return s
}

// Of makes a State of a Snapshot.
func Of(snap Snapshot) State {
	s := State{Target: snap.Target, Lost: terminal.Line(snap.Lost)}
	if snap.Package == nil {
		s.Gone = true
		return s
	}
	pkg := snap.Package
	s.Deleting = pkg.GetDeletionTimestamp() != nil
	s.Image = terminal.Line(pkg.PackageSpec().Image)
	for _, f := range pkg.GetFinalizers() {
		switch f {
		case corev1alpha1.MetricsFinalizer:
			s.Noticed = true
		case corev1alpha1.CachedFinalizer, metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
		default:
			s.Finalizers = append(s.Finalizers, terminal.Line(f))
		}
	}
	s.Retried = pkg.PackageStatus().LastHandledRetry
	s.fromConditions(pkg)
	if why := pkg.GetAnnotations()[corev1alpha1.PauseMessageAnnotation]; s.Paused != "" && strings.TrimSpace(why) != "" {
		s.Paused = terminal.Line(strings.TrimSpace(why))
	}
	if r := pkg.PackageStatus().Resolved; r != nil && s.Unpacked {
		s.Package, s.Version, s.Digest = terminal.Line(r.PackageName), terminal.Line(r.Version), terminal.Line(r.Digest)
	}
	if s.Unpacked || s.Deleting {
		s.fromRevision(snap)
	}
	return s
}

func (s *State) fromConditions(pkg corev1alpha1.GenericPackage) {
	current := func(typ string) *metav1.Condition {
		c := meta.FindStatusCondition(*pkg.StatusConditions(), typ)
		if c == nil || c.ObservedGeneration < pkg.GetGeneration() {
			return nil
		}
		s.Observed = true
		return c
	}
	is := func(typ string, status metav1.ConditionStatus) bool {
		c := current(typ)
		return c != nil && c.Status == status
	}
	message := func(typ string, status metav1.ConditionStatus) string {
		if !is(typ, status) {
			return ""
		}
		c := current(typ)
		return reasoned(c.Reason, c.Message)
	}
	s.Unpacked = is(corev1alpha1.ConditionUnpacked, metav1.ConditionTrue)
	s.Invalid = message(corev1alpha1.ConditionInvalid, metav1.ConditionTrue)
	if s.Invalid == "" {
		s.PullError = message(corev1alpha1.ConditionUnpacked, metav1.ConditionFalse)
	}
	if s.Unpacked {
		s.Ignored = ignored(current(corev1alpha1.ConditionUnpacked).Message)
	}
	s.Paused = message(corev1alpha1.ConditionPaused, metav1.ConditionTrue)
	s.Stalled = message(corev1alpha1.ConditionStalled, metav1.ConditionTrue)
	s.Unavailable = message(corev1alpha1.ConditionAvailable, metav1.ConditionFalse)
	s.Available = is(corev1alpha1.ConditionAvailable, metav1.ConditionTrue)
	s.RolledOut = is(corev1alpha1.ConditionProgressing, metav1.ConditionFalse) &&
		current(corev1alpha1.ConditionProgressing).Reason == corev1alpha1.ReasonIdle
	s.Ready = is(corev1alpha1.ConditionReady, metav1.ConditionTrue)
	if current(corev1alpha1.ConditionReady) == nil {
		// Another engine of the same API, which does not report Ready.
		s.Ready = s.Available && s.RolledOut && s.Unpacked && s.Invalid == ""
	}
	if pkg.PackageStatus().ObservedGeneration >= pkg.GetGeneration() && pkg.PackageStatus().ObservedGeneration > 0 {
		s.Observed = true
	}
}

// reasoned is the message of a condition, or its reason where it has none. It
// may have several lines.
func reasoned(reason, message string) string {
	if strings.TrimSpace(message) == "" {
		return terminal.Line(reason)
	}
	return terminal.Text(strings.TrimSpace(message))
}

// ignored returns what the message of Unpacked says that was ignored: all lines
// after the first.
func ignored(message string) []string {
	_, rest, _ := strings.Cut(strings.TrimSpace(message), "\n")
	var lines []string
	for line := range strings.Lines(rest) {
		if line = terminal.Line(strings.TrimSpace(line)); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// putOff marks the phases that a deletion has not reached: a status calls all of them
// torn down that are not gone.
func putOff(phases []Phase) {
	reached := true
	for i := len(phases) - 1; i >= 0; i-- {
		ph := &phases[i]
		ph.Later = !reached && ph.Ready == 0
		reached = reached && finished(*ph, true)
	}
}

// fromRevision fills in the phases. In a rollout a set is ahead of its package,
// whose status is written less often; a teardown is told by the package alone.
func (s *State) fromRevision(snap Snapshot) {
	status := snap.Package.PackageStatus()
	s.Revision = status.Revision
	phases, blocking := status.Phases, status.Blocking
	set := snap.Set
	if set != nil && (s.Deleting || set.ObjectSetSpec().Revision < s.Revision) {
		set = nil
	}
	if set != nil && len(set.ObjectSetStatus().Phases) > 0 {
		s.Revision = set.ObjectSetSpec().Revision
		phases, blocking = set.ObjectSetStatus().Phases, set.ObjectSetStatus().Blocking
	}
	blocked := map[objects.Key]string{}
	for _, b := range blocking {
		if !blocksNow(b.Phase, phases, s.Deleting) {
			continue
		}
		key := objects.Key{Group: b.Group, Kind: b.Kind, Namespace: b.Namespace, Name: b.Name}
		blocked[key] = terminal.Text(b.Message)
		s.Blocking = append(s.Blocking, Object{
			Name: s.name(key), Group: terminal.Line(b.Group), Phase: terminal.Line(b.Phase),
			State: ObjectBlocked, Message: blocked[key],
		})
	}
	for _, ph := range phases {
		s.Phases = append(s.Phases, Phase{Name: terminal.Line(ph.Name), State: ph.State, Ready: int(ph.Ready), Total: int(ph.Total)})
	}
	if s.Deleting {
		putOff(s.Phases)
	}
	if set != nil {
		s.fillObjects(set, snap.Slices, blocked, len(blocking) < corev1alpha1.MaxBlockingObjects)
	}
}
