package progress

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/refusals"
)

// Snapshot is what the API server returned at one moment.
type Snapshot struct {
	Target Target
	// Package is nil if it does not exist.
	Package corev1alpha1.GenericPackage
	// Set is the newest revision that is not archived; nil if unknown.
	Set corev1alpha1.GenericObjectSet
	// Slices of Set, as far as they are known.
	Slices map[string][]corev1alpha1.ObjectSetObject
	// Lost is why the connection to the API server is lost; empty while it works.
	Lost string
}

// State is the state of a package.
type State struct {
	Target Target
	// Gone: the package does not exist. Deleting: it has a deletion timestamp.
	Gone, Deleting bool
	// Observed: a manager has reported on the generation.
	// Unnoticed: not within UnnoticedAfter, which the caller of Of sets.
	Observed, Unnoticed bool
	Image               string
	// Unpacked: the image was pulled. It contains Package, Version and Digest.
	Unpacked                 bool
	Package, Version, Digest string
	// Ignored parts of the package.
	Ignored []string
	// Chosen is the version that packageRef led to last.
	Chosen string
	// Messages of conditions that hold; PullError and Invalid exclude each other. Unresolved is why packageRef led to no
	// version.
	PullError, Invalid, Paused, Stalled, Unavailable, Unresolved string
	// UnresolvedRemedy is what to do about Unresolved; empty if it says so.
	UnresolvedRemedy string
	// RolledBack: Stalled says which revision gave way to which, why and what to do about it, in its last sentence.
	RolledBack bool
	// Awaiting says which revision awaits its activation, and by what it is activated.
	Awaiting string
	// NotVerified: PullError is that the image is not trusted, and names it.
	NotVerified bool
	// Away is why the cluster of targetRef is not connected, and AwayRemedy what to do about it; empty where it is connected.
	Away, AwayRemedy string
	// Retrying is what the API server answered to a write of the manager, which is tried again.
	Retrying string
	// Waiting is which dependencies are waited for, one a line; Unsatisfied that waiting alone does not help.
	Waiting     string
	Unsatisfied bool
	// Held is why a deletion has not begun: other packages depend on this one.
	Held string
	// Retried is the last retry that the manager has handled.
	Retried string
	// Available: this revision or the one before works. RolledOut: this revision was complete
	// once.
	Available, RolledOut, Ready bool
	// Revision, its phases in their order, and what blocks them.
	Revision int64
	Phases   []Phase
	Blocking []Object
	// Finalizers of others than the engine and the garbage collector.
	Finalizers []string
	Lost       string

	facts summary.Facts
}

// Before is Of, with the phases of the existing revision even if the image was changed.
func Before(snap Snapshot) State {
	s := Of(snap)
	if snap.Package != nil && len(s.Phases) == 0 {
		s.fromRevision(snap)
	}
	return s
}

// Of makes a State of a Snapshot.
func Of(snap Snapshot) State {
	s := State{Target: snap.Target, Lost: terminal.Line(snap.Lost), Gone: snap.Package == nil}
	if s.Gone {
		return s
	}
	pkg := snap.Package
	s.Deleting = pkg.GetDeletionTimestamp() != nil
	s.Image, s.Chosen = imageOf(pkg)
	for _, f := range pkg.GetFinalizers() {
		switch f {
		case corev1alpha1.MetricsFinalizer, corev1alpha1.CachedFinalizer, metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
		default:
			s.Finalizers = append(s.Finalizers, terminal.Line(f))
		}
	}
	s.Retried = pkg.PackageStatus().LastHandledRetry
	s.fromConditions(pkg)
	if why := strings.TrimSpace(pkg.GetAnnotations()[corev1alpha1.PauseMessageAnnotation]); s.Paused != "" && why != "" {
		s.Paused = terminal.Line(why)
	}
	if r := pkg.PackageStatus().Resolved; r != nil && s.Unpacked {
		s.Package, s.Version, s.Digest = terminal.Line(r.PackageName), terminal.Line(r.Version), terminal.Line(r.Digest)
	}
	if s.Unpacked || s.Deleting {
		s.fromRevision(snap)
	}
	return s
}

// imageOf is the image of a package, or of the version that was chosen for it. Before
// that it is the reference to choose by.
func imageOf(pkg corev1alpha1.GenericPackage) (image, chosen string) {
	spec, status := pkg.PackageSpec(), pkg.PackageStatus()
	if spec.PackageRef == nil {
		return terminal.Line(spec.Image), ""
	}
	if attempted := status.LastAttempted; attempted != nil {
		return terminal.Line(cmp.Or(attempted.Image, Followed(spec.PackageRef))), terminal.Line(attempted.Version)
	}
	return terminal.Line(Followed(spec.PackageRef)), ""
}

// SubjectOf names what a package with a packageRef follows: the package that was chosen, or else the requested one.
func SubjectOf(pkg corev1alpha1.GenericPackage) string {
	return cmp.Or(offers.NameOf(pkg), Subject(pkg.PackageSpec().PackageRef))
}

// Subject names the package of a packageRef, by its API where it has one, such as "what provides example.com/v1 Shop".
func Subject(ref *corev1alpha1.PackageReference) string {
	if ref.API != nil {
		return "what provides " + corev1alpha1.ProvidedAPI(*ref.API).String()
	}
	return ref.Name
}

// Followed names what a packageRef chooses from, such as "shop.example.com >=1.2, <2".
func Followed(ref *corev1alpha1.PackageReference) string {
	text := strings.TrimSpace(Subject(ref) + " " + ref.Version)
	switch {
	case ref.Prereleases == nil:
	case len(ref.Prereleases.Identifiers) == 0:
		text += " with prereleases"
	default:
		text += " with prereleases of " + strings.Join(ref.Prereleases.Identifiers, ", ")
	}
	return text
}

func (s *State) fromConditions(pkg corev1alpha1.GenericPackage) {
	facts := summary.FactsOf(pkg)
	s.facts = facts
	message := func(holds bool, typ string, status metav1.ConditionStatus) string {
		if !holds {
			return ""
		}
		return terminal.Text(summary.Message(pkg, typ, status))
	}
	s.Observed, s.Available, s.RolledOut, s.Ready = facts.Observed, facts.Available, facts.RolledOut, facts.Ready
	s.Unpacked, s.NotVerified, s.Unsatisfied = facts.Unpacked, facts.NotVerified, facts.Unsatisfied
	if facts.Away {
		c := summary.Current(pkg, corev1alpha1.ConditionTargetConnected)
		s.Away, s.AwayRemedy = terminal.Line(cmp.Or(c.Message, c.Reason)), terminal.Line(awayRemedy(s.Target, pkg, c.Reason))
	}
	s.Invalid = message(facts.Invalid, corev1alpha1.ConditionInvalid, metav1.ConditionTrue)
	s.PullError = message(facts.PullError, corev1alpha1.ConditionUnpacked, metav1.ConditionFalse)
	if s.Unpacked {
		s.Ignored = ignored(summary.Current(pkg, corev1alpha1.ConditionUnpacked).Message)
	}
	s.Paused = message(facts.Paused, corev1alpha1.ConditionPaused, metav1.ConditionTrue)
	s.Awaiting = message(true, corev1alpha1.ConditionAwaitingActivation, metav1.ConditionTrue)
	s.Stalled = message(facts.Stalled, corev1alpha1.ConditionStalled, metav1.ConditionTrue)
	s.RolledBack = facts.Stalled && summary.Current(pkg, corev1alpha1.ConditionRolledBack).Status == metav1.ConditionTrue
	s.Unresolved = message(facts.Unresolved, corev1alpha1.ConditionResolved, metav1.ConditionFalse)
	if s.Unresolved != "" {
		s.UnresolvedRemedy = terminal.Line(unresolvedRemedy(s.Target, pkg))
	}
	s.Waiting = message(facts.Waiting, corev1alpha1.ConditionDependenciesReady, metav1.ConditionFalse)
	s.Held = message(true, corev1alpha1.ConditionDeletionHeld, metav1.ConditionTrue)
	if summary.Current(pkg, corev1alpha1.ConditionReconciling).Reason == corev1alpha1.ReasonApplyError {
		s.Retrying = message(true, corev1alpha1.ConditionReconciling, metav1.ConditionTrue)
	}
	s.Unavailable = message(true, corev1alpha1.ConditionAvailable, metav1.ConditionFalse)
}

// ignored returns all lines after the first of the message of Unpacked.
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

// rolledOut is what a status says of the phases of a revision.
type rolledOut struct {
	revision int64
	phases   []corev1alpha1.PhaseStatus
	blocking []corev1alpha1.BlockingObject
	// set is nil where it does not show how things are.
	set corev1alpha1.GenericObjectSet
}

// rollout returns what the newest status says. That of the set is newer than that of the package, except for a teardown. Of the
// objects that block there are those that do so now.
func (snap Snapshot) rollout() rolledOut {
	status, deleting := snap.Package.PackageStatus(), snap.Package.GetDeletionTimestamp() != nil
	r := rolledOut{status.Revision, status.Phases, status.Blocking, snap.Set}
	if r.set != nil && (deleting || r.set.ObjectSetSpec().Revision < r.revision) {
		r.set = nil
	}
	if r.set != nil && len(r.set.ObjectSetStatus().Phases) > 0 {
		r.revision, r.phases, r.blocking = r.set.ObjectSetSpec().Revision, r.set.ObjectSetStatus().Phases, r.set.ObjectSetStatus().Blocking
	}
	r.blocking = slices.DeleteFunc(slices.Clone(r.blocking), func(b corev1alpha1.BlockingObject) bool { return !blocksNow(b, r.phases, deleting) })
	return r
}

// fromRevision adds the phases.
func (s *State) fromRevision(snap Snapshot) {
	rollout := snap.rollout()
	s.Revision = rollout.revision
	blocked := map[objects.Key]string{}
	for _, b := range rollout.blocking {
		key := objects.Key{Group: b.Group, Kind: b.Kind, Namespace: b.Namespace, Name: b.Name}
		blocked[key] = terminal.Text(b.Message)
		s.Blocking = append(s.Blocking, Object{
			Name: s.name(key), Group: terminal.Line(b.Group), Phase: terminal.Line(b.Phase),
			State: ObjectBlocked, Message: blocked[key], More: int(b.More),
			Remedy: terminal.Line(refusals.Remedy(key, b.Message)),
		})
	}
	s.Phases = phasesOf(rollout.phases, s.Deleting)
	if rollout.set != nil {
		s.fillObjects(rollout.set, snap.Slices, blocked, len(rollout.blocking) < corev1alpha1.MaxBlockingObjects)
	}
}

func (s State) inOrder() []Phase {
	phases := slices.Clone(s.Phases)
	if s.Deleting {
		slices.Reverse(phases)
	}
	return phases
}

func (s State) title() string {
	if s.Package == "" {
		return ""
	}
	return strings.TrimSpace(s.Package + " " + s.Version)
}

// Target names a Package or ClusterPackage.
type Target struct {
	Scope corev1alpha1.Scope
	// Namespace is empty for a ClusterPackage.
	Namespace, Name string
}

// TargetOf returns the target that a package is.
func TargetOf(pkg corev1alpha1.GenericPackage) Target {
	return Target{Scope: corev1alpha1.ScopeOf(pkg.GetNamespace()), Namespace: pkg.GetNamespace(), Name: pkg.GetName()}
}

// Kind is Package or ClusterPackage.
func (t Target) Kind() string { return t.Scope.Kind("Package") }

// Arg is the target as commands take it, such as clusterpackage/cert.
func (t Target) Arg() string { return strings.ToLower(t.Kind()) + "/" + t.Name }

// Flags are the arguments that select the target.
func (t Target) Flags() string {
	if t.Namespace == "" {
		return t.Arg()
	}
	return t.Arg() + " -n " + t.Namespace
}

// String is such as "package shop/web" and "clusterpackage cert".
func (t Target) String() string {
	return objects.Key{Kind: strings.ToLower(t.Kind()), Namespace: t.Namespace, Name: t.Name}.String()
}
