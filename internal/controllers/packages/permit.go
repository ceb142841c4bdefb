package packages

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/permissions"
)

// permit compares the rights that a loaded package requires with the ceiling. If the ceiling lacks
// some, the package is not written, and no dependency is installed for it.
func (s *reconciliation) permit(context.Context) (step, string, error) {
	if s.step != stepDeploy || !s.attempt.Out.Deployed.IsZero() || len(s.attempt.Out.Content.Rules) == 0 {
		return s.step, s.why, nil
	}

	ceiling := s.Ceiling()
	switch {
	case ceiling.Err != nil: // it can have lost rights since it was read
		return stepGather, fmt.Sprintf("Waiting for ClusterRole %s, the ceiling of the rights of packages: %v", ceiling.Role, ceiling.Err), nil
	case !ceiling.Known && ceiling.Role != "":
		return stepGather, "", nil // its event follows
	}

	if s.refused = refuse(ceiling, s.attempt.Out.Content.Rules); s.refused.Reason != "" {
		return stepPermit, s.refused.Message, nil
	}
	return s.step, s.why, nil
}

// refuse returns why rules are not granted under a ceiling; its zero value means that they are.
func refuse(ceiling permissions.Ceiling, rules []rbacv1.PolicyRule) conditions.State {
	asked := func(rules []rbacv1.PolicyRule) string {
		return conditions.Cut(permissions.DescribeRules(rules), limits.MessageBytes/2)
	}
	if ceiling.Role == "" {
		return conditions.State{Reason: corev1alpha1.ReasonNoCeiling, Message: "This manager does not grant rights to packages, and this package is not written without the rights that it requires. " +
			"An administrator names a ClusterRole that has them by --permission-ceiling: " + asked(rules) + "."}
	}

	if !ceiling.Found {
		return conditions.State{Reason: corev1alpha1.ReasonNoCeiling, Message: fmt.Sprintf("There is no ClusterRole %s, the ceiling of the rights of packages (--permission-ceiling), "+
			"and this package is not written without the rights that it requires: %s.", ceiling.Role, asked(rules))}
	}

	above := ceiling.Above(rules)
	if len(above) == 0 {
		return conditions.State{}
	}
	return conditions.State{Reason: corev1alpha1.ReasonAboveCeiling, Message: fmt.Sprintf("The package requires rights that ClusterRole %s, the ceiling of the rights of packages, does not have, "+
		"and is not written without them. Ask an administrator to add them, or change the package to require fewer: %s.", ceiling.Role, asked(above))}
}

// reportPermissions sets the condition PermissionsGranted from the refusal, or from the deployed
// content.
func reportPermissions(status *corev1alpha1.PackageStatus, v view) {
	set := func(granted bool, reason, message string) {
		conditions.Set(&status.Conditions, v.pkg.GetGeneration(), corev1alpha1.ConditionPermissionsGranted, granted, reason, message)
	}
	switch {
	case v.step == stepPermit:
		set(false, v.refused.Reason, v.refused.Message)
	case v.step == stepSync && meta.IsStatusConditionFalse(status.Conditions, corev1alpha1.ConditionPermissionsGranted):
		// The refused version is not wanted any more.
		conditions.Remove(&status.Conditions, corev1alpha1.ConditionPermissionsGranted)
	case v.step != stepDeploy || v.writeErr != nil:
	case len(v.content.Rules) > 0:
		set(true, corev1alpha1.ReasonPermissionsGranted, "The ceiling has the rights that this version requires.")
	default:
		conditions.Remove(&status.Conditions, corev1alpha1.ConditionPermissionsGranted)
	}
}

// CeilingChanged enqueues the Packages that request rights and are not deployed yet.
func (r *Reconciler) CeilingChanged() {
	r.loads.EnqueueLoaded(func(loaded *load.Content) bool { return len(loaded.Rules) > 0 })
}
