package objectdeployments

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/activation"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/statuses"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/revisions"
)

// syncActivation carries out the decision of package revisions about activation and rollback, one
// write at a time, and reports whether it wrote.
func (s *reconciliation) syncActivation(ctx context.Context, d revisions.Decision) (bool, error) {
	if i := slices.IndexFunc(s.sets, activation.RejectedByUser); i >= 0 {
		return true, s.takeRejection(ctx, s.sets[i])
	}

	switch {
	case len(d.Reject) > 0:
		return true, s.reject(ctx, s.sets[d.Reject[0]], corev1alpha1.ReasonProgressDeadlineExceeded)
	case len(d.Return) > 0:
		return true, s.returnToHistory(ctx, s.sets[d.Return[0].Revision], d.Return[0].Reason)
	case len(d.Retire) > 0:
		s.collectionDue = s.collectionDue || s.sealed()
		return true, s.archive(ctx, s.sets[d.Retire[0]])
	case len(d.Activate) > 0:
		return s.activate(ctx, s.sets[d.Activate[0]], 0)
	case len(d.Restore) > 0:
		return s.activate(ctx, s.sets[d.Restore[0]], s.current.ObjectSetSpec().Revision)
	}

	return false, nil
}

// waiting reports whether a set of the deployment awaits its activation. It is then not loaded, so
// none of its objects are claimed or written.
func (s *reconciliation) waiting(set corev1alpha1.GenericObjectSet) bool {
	return s.deployment != nil && objectsets.Waiting(set)
}

// activate gives a set the highest number, in one guarded write, which hands over to it as an
// upgrade does. from is the revision that it takes over from in a rollback. A set in history that
// lost slices stays there.
func (s *reconciliation) activate(ctx context.Context, set corev1alpha1.GenericObjectSet, from int64) (bool, error) {
	if !objectsets.Owns(set) {
		missing, err := s.missingOf(ctx, set)
		if err != nil {
			return false, err
		}
		switch {
		case missing == "":
		case from > 0:
			s.rollbackHeld = missing
			return false, nil
		default:
			return true, s.returnToHistory(ctx, set, missing)
		}
	}

	highest := s.sets[len(s.sets)-1].ObjectSetSpec().Revision
	err := s.patch(ctx, set, func() {
		spec := set.ObjectSetSpec()
		spec.LifecycleState, spec.Revision = corev1alpha1.ObjectSetLifecycleStateActive, highest+1
		objectsets.Annotate(set, corev1alpha1.RolledBackFromAnnotation, "")
		if !objectsets.Owns(set) {
			objectsets.Annotate(set, corev1alpha1.ClaimedAnnotation, "") // other owners may have claimed its objects meanwhile
		}
		if from > 0 {
			objectsets.Annotate(set, corev1alpha1.RolledBackFromAnnotation, strconv.FormatInt(from, 10))
		}
	})
	if err != nil {
		return false, err
	}
	if from > 0 {
		s.announce(corev1alpha1.ReasonRolledBack, fmt.Sprintf("Revision %d missed its deadline, and gives way to revision %d.", from, highest+1))
	}

	return true, s.listSets(ctx)
}

// missingOf returns the reason why a set in history cannot be activated: some of its slices or
// values no longer exist. They are looked for again after a while.
func (s *reconciliation) missingOf(ctx context.Context, set corev1alpha1.GenericObjectSet) (string, error) {
	record := s.of(set.GetUID())
	if s.Wait(record.missingReadAt.Add(missingRetry).Sub(s.Now())) {
		return corev1alpha1.ReasonSlicesMissing, nil
	}

	missing, err := s.readSlices(ctx, set)
	if err != nil {
		return "", err
	}

	secrets, err := s.readSecrets(ctx, set)
	switch {
	case err != nil:
		return "", err
	case len(secrets) > 0:
		return corev1alpha1.ReasonValuesNotKept, nil
	case len(missing) > 0:
		record.missingReadAt = s.Now()
		return corev1alpha1.ReasonSlicesMissing, nil
	}

	return "", nil
}

// valuesGone reports whether sensitive values of a set in history are lost: no revision in use has
// them.
func (s *reconciliation) valuesGone(set corev1alpha1.GenericObjectSet) bool {
	names := objectsets.SecretsOf(set)
	if len(names) == 0 || objectsets.Owns(set) {
		return false
	}
	used := s.sliceReferences()
	return slices.ContainsFunc(names, func(name string) bool { return !used[name] })
}

// renew makes a set with a new number start over, because its status describes the earlier number.
// If some of its objects might exist, its claim stays, and its first phase stays started: it
// maintains these objects, and a later revision does not supersede it before that one has
// succeeded.
func (s *reconciliation) renew(ctx context.Context, set corev1alpha1.GenericObjectSet) error {
	status := set.ObjectSetStatus().DeepCopy()
	status.ObservedGeneration, status.Revision = set.GetGeneration(), set.ObjectSetSpec().Revision
	status.Blocking, status.Conditions = nil, nil
	rev := s.revisionOf(set)
	begun := objectsets.Owns(set) && rev != nil && rev.Opened() > 0
	if begun && len(status.Phases) == 0 { // an earlier engine records none
		status.Phases = statuses.Phases(nil, &phases.Report{}, rev)
	}

	for i := range status.Phases {
		status.Phases[i].State, status.Phases[i].Ready = corev1alpha1.PhaseStateWaiting, 0
		if i == 0 && begun {
			status.Phases[i].State = corev1alpha1.PhaseStateApplying
		}
	}

	status.Conditions = []metav1.Condition{activation.Activated(set, s.Now())}
	switch decided := meta.FindStatusCondition(*set.StatusConditions(), corev1alpha1.ConditionClaimed); {
	case begun && rev.Claimed():
		conditions.Set(&status.Conditions, set.GetGeneration(), corev1alpha1.ConditionClaimed, true, corev1alpha1.ReasonClaimed, statuses.AllClaimed)
	case begun && decided != nil:
		conditions.Set(&status.Conditions, set.GetGeneration(), corev1alpha1.ConditionClaimed, false, corev1alpha1.ReasonClaimedByOther, statuses.LostClaim)
	}

	if err := s.writeSetStatus(ctx, set, status); err != nil {
		return err
	}
	return s.listSets(ctx)
}

// returnToHistory takes back that a user set an archived set Active.
func (s *reconciliation) returnToHistory(ctx context.Context, set corev1alpha1.GenericObjectSet, reason string) error {
	err := s.patch(ctx, set, func() { set.ObjectSetSpec().LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived })
	if err != nil {
		return err
	}
	text := activation.NotActivated(set, reason)
	s.Events.Eventf(set, nil, corev1.EventTypeWarning, reason, "Activation", "%s", text)
	if reason == corev1alpha1.ReasonActivationAutomatic {
		return nil
	}
	status := statuses.Archived(set)
	conditions.Set(&status.Conditions, set.GetGeneration(), corev1alpha1.ConditionAwaitingActivation, false, reason, text)
	return s.writeSetStatus(ctx, set, status)
}

// nameInCommands is how commands name the owner.
func (s *reconciliation) nameInCommands() string {
	kind := s.key.Kind
	if ref := s.packageOf(); ref != nil {
		kind = ref.Kind
	}
	return statuses.Argument(kind, s.key.Namespace, s.key.Name)
}

// adoptCommand makes another owner the user's own; empty unless its Package was installed as a
// dependency.
func (r *Reconciler) adoptCommand(ctx context.Context, owner objects.OwnerKey) string {
	scope := corev1alpha1.ScopeOf(owner.Namespace)
	if owner.Kind != scope.Kind("ObjectDeployment") {
		return ""
	}
	pkg := scope.NewPackage()
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, pkg, client.UnsafeDisableDeepCopy)
	if err != nil || pkg.GetLabels()[corev1alpha1.GeneratedLabel] != "true" {
		return ""
	}
	return statuses.Adopt(scope.Kind("Package"), owner.Namespace, owner.Name)
}

// retryCommand tries rejected content again. Without a Package, the annotation of the deployment
// does that.
func (s *reconciliation) retryCommand() string {
	if s.packageOf() == nil {
		return "kubectl annotate --overwrite " + s.nameInCommands() + " " + corev1alpha1.RetryAnnotation + "=$(date +%s)"
	}
	return "kubectl package retry " + s.nameInCommands()
}

// reportRevisions names the revisions that are in charge and awaited.
func (s *reconciliation) reportRevisions(status *corev1alpha1.ObjectDeploymentStatus) {
	status.CurrentRevision, status.CurrentVersion, status.CurrentImage, status.WaitingRevision = "", "", "", ""
	if s.current != nil {
		status.CurrentRevision, status.CurrentVersion = s.current.GetName(), activation.VersionOf(s.current)
		status.CurrentImage = s.current.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation]
	}
	if s.awaitsActivation() {
		status.WaitingRevision = s.wanted.GetName()
	}
	status.Rejected = activation.RejectionsOf(s.deployment)
}

// awaitsActivation reports whether the revision of the template is not in charge, and can be
// activated.
func (s *reconciliation) awaitsActivation() bool {
	return s.wanted != nil && s.wanted != s.current && !s.rejected(activation.OfSet(s.wanted))
}

// awaiting reports the action that is expected of a user: an activation, or another one after a
// rollback. It returns the progress to report then.
func (s *reconciliation) awaiting(conds *[]metav1.Condition, progressing bool, reason, message string) (bool, string, string) {
	generation := s.deployment.GetGeneration()
	if !s.awaitsActivation() {
		conditions.Remove(conds, corev1alpha1.ConditionAwaitingActivation)
	}
	if s.rollbackHeld == "" && !s.rolledBack() {
		conditions.Remove(conds, corev1alpha1.ConditionRolledBack)
	}

	idle := reason == corev1alpha1.ReasonIdle
	switch {
	case s.rollbackHeld != "":
		conditions.Set(conds, generation, corev1alpha1.ConditionRolledBack, false, s.rollbackHeld, activation.Held(s.rollbackHeld))
	case s.rolledBack():
		why, text := s.rollbackMessage()
		conditions.Set(conds, generation, corev1alpha1.ConditionRolledBack, true, why, text)
		if idle && !s.awaitsActivation() {
			return false, corev1alpha1.ReasonRolledBack, text
		}
	}

	switch {
	case s.awaitsActivation():
		text := activation.How(s.wanted, s.nameInCommands())
		conditions.Set(conds, generation, corev1alpha1.ConditionAwaitingActivation, true, corev1alpha1.ReasonAwaitingActivation, text)
		if idle {
			return false, corev1alpha1.ReasonAwaitingActivation, text
		}
	case idle && s.awaited && s.wanted != s.current:
		return false, corev1alpha1.ReasonRejected, "The content of the template was rejected: change it, or run " + s.retryCommand() + "."
	}

	return progressing, reason, message
}

// rolledBack reports whether the revision in charge took over from one that missed its deadline,
// and the template still has the content of another one.
func (s *reconciliation) rolledBack() bool {
	return s.current != nil && s.current != s.wanted && s.awaited && s.current.GetAnnotations()[corev1alpha1.RolledBackFromAnnotation] != ""
}
