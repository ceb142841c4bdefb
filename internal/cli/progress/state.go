package progress

import (
	"cmp"
	"fmt"
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

// Snapshot holds the API server's responses at one moment.
type Snapshot struct {
	Target Target
	// Package is nil if it does not exist.
	Package corev1alpha1.GenericPackage
	// Set is the newest revision that is not archived; nil if unknown.
	Set corev1alpha1.GenericObjectSet
	// Slices of Set, as far as they are known.
	Slices map[string][]corev1alpha1.ObjectSetObject
	// Lost is the reason why the connection to the API server is lost; empty while it works.
	Lost string
}

// State is the state of a package.
type State struct {
	Target Target

	// Gone means that the package does not exist. Deleting means that it has a deletion timestamp.
	Gone, Deleting bool
	// Observed means that a manager has reported on the generation.
	Observed bool
	// Unnoticed is why nothing has changed for UnnoticedAfter; empty if a manager works. The caller
	// of Of sets it.
	Unnoticed string
	Image     string

	// Unpacked means that the image was pulled. It contains Package, Version and Digest.
	Unpacked                 bool
	Package, Version, Digest string

	// Ignored parts of the package.
	Ignored []string
	// Chosen is the last version that packageRef led to, and choice is the reason.
	Chosen, choice string
	// Messages of conditions that hold. PullError and Invalid exclude each other. Unresolved is the
	// reason why packageRef does not lead to a version.
	PullError, Invalid, Paused, Stalled, Unavailable, Unresolved string

	// UnresolvedRemedy is the remedy for Unresolved; empty if Unresolved includes it.
	UnresolvedRemedy string
	// RolledBack means that Stalled names the revision that was rolled back, its successor and the
	// reason. Its last sentence is the remedy.
	RolledBack bool
	// Awaiting names the revision that awaits its activation, and how to activate it.
	Awaiting string

	// NotVerified means that PullError is about an untrusted image, which it names.
	NotVerified bool
	// Away is the reason why the cluster of targetRef is not connected, and AwayRemedy is the
	// remedy. Both are empty if it is connected.
	Away, AwayRemedy string
	// Retrying is the API server's answer to a write that the manager retries.
	Retrying string

	// Waiting lists the awaited dependencies, one per line. Unsatisfied means that waiting alone
	// does not help.
	Waiting     string
	Unsatisfied bool

	// Held is the reason why a deletion has not started: other packages depend on this one.
	Held string
	// Retried is the last retry that the manager has handled.
	Retried string
	// Available means that this revision or the previous one works.
	Available, Ready bool

	// Revision, its phases in order, and its blocking objects.
	Revision int64
	Phases   []Phase
	Blocking []Object

	// Finalizers that belong neither to the engine nor to the garbage collector.
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

// Of returns the State of a Snapshot.
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
		// The engine and the garbage collector remove their own finalizers.
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

	// A deletion shows its phases even if the current image was never unpacked.
	if s.Unpacked || s.Deleting {
		s.fromRevision(snap)
	}
	return s
}

// imageOf returns the image of a package, or of its chosen version. Before a choice, it returns the
// reference to choose by.
func imageOf(pkg corev1alpha1.GenericPackage) (image, chosen string) {
	spec, status := pkg.PackageSpec(), pkg.PackageStatus()
	if spec.PackageRef == nil {
		return terminal.Line(spec.Image), ""
	}
	if attempted := status.LastAttempted; attempted != nil {
		// A version of plain manifests has no image.
		return terminal.Line(cmp.Or(attempted.Image, Followed(spec.PackageRef))), terminal.Line(attempted.Version)
	}
	return terminal.Line(Followed(spec.PackageRef)), ""
}

// PassedOver explains why the manager chose another version than one that is offered, such as
// because of its dependencies. It is empty if it did not, or does not know this version yet.
func (s State) PassedOver(version string) string {
	if version == "" || version == s.Chosen || !strings.Contains(s.choice, "; "+version+" ") {
		return ""
	}
	return oneLine(s.choice)
}

// SubjectOf names the package that a package with a packageRef follows: the chosen one, or else the
// requested one.
func SubjectOf(pkg corev1alpha1.GenericPackage) string {
	return cmp.Or(offers.NameOf(pkg), Subject(pkg.PackageSpec().PackageRef))
}

// Subject names the package of a packageRef, by its API if it has one, such as "what provides
// example.com/v1 Shop".
func Subject(ref *corev1alpha1.PackageReference) string {
	if ref.API != nil {
		return "what provides " + corev1alpha1.ProvidedAPI(*ref.API).String()
	}
	return ref.Name
}

// Followed names the choice of a packageRef, such as "shop.example.com >=1.2, <2".
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

// fromConditions fills in the fields that the conditions of the current generation determine.
func (s *State) fromConditions(pkg corev1alpha1.GenericPackage) {
	facts := summary.FactsOf(pkg)
	s.facts = facts

	message := func(holds bool, typ string, status metav1.ConditionStatus) string {
		if !holds {
			return ""
		}
		return terminal.Text(summary.Message(pkg, typ, status))
	}

	s.Observed, s.Available, s.Ready = facts.Observed, facts.Available, facts.Ready
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
	s.choice = message(pkg.PackageSpec().PackageRef != nil, corev1alpha1.ConditionResolved, metav1.ConditionTrue)
	if s.Unresolved != "" {
		s.UnresolvedRemedy = terminal.Line(unresolvedRemedy(s.Target, pkg))
	}

	s.Waiting = message(facts.Waiting, corev1alpha1.ConditionDependenciesReady, metav1.ConditionFalse)
	s.Held = message(true, corev1alpha1.ConditionDeletionHeld, metav1.ConditionTrue)
	// Only this reason means that the API server refuses or delays writes.
	if summary.Current(pkg, corev1alpha1.ConditionReconciling).Reason == corev1alpha1.ReasonApplyError {
		s.Retrying = message(true, corev1alpha1.ConditionReconciling, metav1.ConditionTrue)
	}
	s.Unavailable = message(true, corev1alpha1.ConditionAvailable, metav1.ConditionFalse)
}

// ignored returns all lines of the message of Unpacked except the first.
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

// rolledOut is the status of the phases of a revision.
type rolledOut struct {
	revision int64
	phases   []corev1alpha1.PhaseStatus
	blocking []corev1alpha1.BlockingObject
	// set is nil if it does not show the current state.
	set corev1alpha1.GenericObjectSet
}

// rollout returns the newest status. The set's status is newer than the package's, except during a
// teardown. Objects are blocking only if they block now.
func (snap Snapshot) rollout() rolledOut {
	status, deleting := snap.Package.PackageStatus(), snap.Package.GetDeletionTimestamp() != nil
	r := rolledOut{status.Revision, status.Phases, status.Blocking, snap.Set}
	// During a teardown, the package's status is newer than the set's.
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

// inOrder returns the phases in the order of their work: reversed during a deletion.
func (s State) inOrder() []Phase {
	phases := slices.Clone(s.Phases)
	if s.Deleting {
		slices.Reverse(phases)
	}
	return phases
}

// title returns the package and its version; empty if they are not known.
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

// TargetOf returns the target of a package.
func TargetOf(pkg corev1alpha1.GenericPackage) Target {
	return TargetFor(pkg.GetNamespace(), pkg.GetName())
}

// TargetFor returns the target of a name in a namespace, which is empty for a ClusterPackage.
func TargetFor(namespace, name string) Target {
	return Target{Scope: corev1alpha1.ScopeOf(namespace), Namespace: namespace, Name: name}
}

// ScopeFlag is the flag that commands about the catalogue of a namespace, or of the cluster if it is
// empty, need after a name.
func ScopeFlag(namespace string) string {
	if namespace == "" {
		return " --cluster"
	}
	return " -n " + namespace
}

// Kind is Package or ClusterPackage.
func (t Target) Kind() string { return t.Scope.Kind("Package") }

// Arg is the target as an argument of commands, such as clusterpackage/cert.
func (t Target) Arg() string { return strings.ToLower(t.Kind()) + "/" + t.Name }

// Flags are the arguments that select the target.
func (t Target) Flags() string {
	if t.Namespace == "" {
		return t.Arg()
	}
	return t.Arg() + " -n " + t.Namespace
}

// String returns a text such as "package shop/web" or "clusterpackage cert".
func (t Target) String() string {
	return objects.Key{Kind: strings.ToLower(t.Kind()), Namespace: t.Namespace, Name: t.Name}.String()
}

// awayRemedy is the remedy if the cluster of a targetRef is not connected for a reason of the
// condition TargetConnected.
func awayRemedy(t Target, pkg corev1alpha1.GenericPackage, reason string) string {
	if pkg.GetDeletionTimestamp() != nil {
		return "The deletion continues automatically once the target is connected. To delete the package at once, and leave its objects in the target: " +
			"kubectl annotate " + t.Flags() + " " + corev1alpha1.AbandonTargetAnnotation + "=true"
	}

	ref := pkg.PackageSpec().TargetRef
	if ref == nil {
		return ""
	}

	namespace, key := cmp.Or(t.Namespace, corev1alpha1.DefaultNamespace), ref.KubeconfigSecretRef.KeyOrDefault()
	secret := fmt.Sprintf("%s, key %s", objects.Key{Kind: "Secret", Namespace: namespace, Name: ref.KubeconfigSecretRef.Name}, key)
	switch reason {
	case corev1alpha1.ReasonKubeconfigMissing:
		return fmt.Sprintf("Create it: kubectl -n %s create secret generic %s --from-file=%s=KUBECONFIG", namespace, ref.KubeconfigSecretRef.Name, key)
	case corev1alpha1.ReasonKubeconfigRefused:
		return "Change the kubeconfig in " + secret + "; it is retried at once"
	case corev1alpha1.ReasonTargetUnreachable:
		return "Check whether the target runs, and whether the manager reaches the address in " + secret + "; it is retried automatically"
	case corev1alpha1.ReasonTargetUnauthorized:
		return "Do this for the user of the kubeconfig in " + secret + "; it is retried automatically, and at once when the Secret changes"
	case corev1alpha1.ReasonOtherCluster:
		deployment := strings.ToLower(t.Scope.Kind("ObjectDeployment")) + strings.TrimPrefix(t.Flags(), strings.ToLower(t.Kind()))
		return fmt.Sprintf("Name the cluster that has the objects in %s. If it was recreated, install the package in it: kubectl annotate %s %s-",
			secret, deployment, corev1alpha1.TargetClusterAnnotation)
	}

	return ""
}

// unresolvedRemedy is the remedy if packageRef does not lead to a version.
func unresolvedRemedy(t Target, pkg corev1alpha1.GenericPackage) string {
	switch name := SubjectOf(pkg); summary.Current(pkg, corev1alpha1.ConditionResolved).Reason {
	case corev1alpha1.ReasonDowngradeRefused:
		return "Allow the lower version once: kubectl package upgrade " + t.Flags() + " --allow-downgrade"
	case corev1alpha1.ReasonNoMatchingVersion:
		return fmt.Sprintf("To see the versions, and why they do not fit: kubectl package available %s%s. Then choose another constraint: kubectl package upgrade %s --version CONSTRAINT",
			name, ScopeFlag(t.Namespace), t.Flags())
	}
	return ""
}
