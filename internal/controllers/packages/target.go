package packages

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
)

// userOf names a Package among the users of targets.
func userOf(key types.NamespacedName) string { return "Package " + key.String() }

// connect finds the target of a Package with a targetRef.
func (s *reconciliation) connect() {
	ref := s.pkg.PackageSpec().TargetRef
	if ref == nil || s.Targets == nil {
		return
	}
	at := targets.RefOf(s.namespaceOf(s.pkg), ref)
	key, enqueue := keyOf(s.pkg), s.enqueue
	s.Targets.Use(userOf(key), at, func() { enqueue(key) })
	session, state := s.Targets.Find(at)
	s.targetState = &state
	if state.Ready {
		s.target = session
	}
}

// gatherEnvironment reads the part of the objects' cluster that packages see.
func (s *reconciliation) gatherEnvironment(ctx context.Context) {
	environment, namespace := s.Environment, s.pkg.GetNamespace()
	if ref := s.pkg.PackageSpec().TargetRef; ref != nil {
		if problem, forbidden := s.checkTarget(ctx); problem != "" {
			s.inputError = "Waiting for the target. " + problem
			if forbidden && s.dep == nil { // the installed content keeps the connection that it has
				s.targetState = &targets.State{Reason: corev1alpha1.ReasonKubeconfigRefused, Message: problem}
			}
			return
		}
		if s.connect(); s.target == nil {
			switch {
			case s.targetState == nil:
				s.inputError = "Waiting for the target: other clusters are not served here."
			case s.targetState.Connecting():
				s.waiting = true
			default:
				s.inputError = "Waiting for the target. " + s.targetState.Message
			}
			return
		}
		environment = s.target.Environment
		namespace = ref.NamespaceOf(namespace)
	}

	var err error
	s.environment, s.waiting, err = environment.For(namespace)
	if err != nil && !s.waiting {
		why := err.Error()
		if s.target != nil {
			if text, about := engine.ExplainTarget(err, true); about {
				why, s.inputReason = text, corev1alpha1.ReasonForbidden
			}
		}
		s.inputError = "Waiting for information about the cluster: " + why
	}
}

// checkTarget returns why the kubeconfig is not read for the Package; empty if it is. The check is
// repeated later. forbidden means that it lacks a right. A Package that is being deleted is not
// checked, because its objects already exist.
func (s *reconciliation) checkTarget(ctx context.Context) (problem string, forbidden bool) {
	if problem := s.Accounts.refusal(s.pkg); problem != "" {
		return problem, true
	}
	ref := s.pkg.PackageSpec().TargetRef.KubeconfigSecretRef
	secret := sources.Ref{Kind: sources.KindSecret, Namespace: s.namespaceOf(s.pkg), Name: ref.Name}
	if err := s.Pipeline.Guard.Check(ctx, s.Accounts.reader(s.pkg), secret); err != nil {
		s.Requeue(limits.LoadBackoffMin)
		return err.Error(), errors.As(err, new(*sources.ForbiddenError))
	}
	return "", false
}

// servedAPI returns the served APIs of the cluster that the objects are in.
func (s *reconciliation) servedAPI() resolver.Served {
	if s.target != nil {
		return s.target.ServedAPI
	}
	return s.ServedAPI
}

// reportTarget sets the condition TargetConnected. The availability in a target that is
// not connected is not known.
func reportTarget(status *corev1alpha1.PackageStatus, v view) {
	if v.targetState == nil {
		conditions.Remove(&status.Conditions, corev1alpha1.ConditionTargetConnected)
		return
	}

	generation := v.pkg.GetGeneration()
	if other := otherCluster(v); other != nil {
		conditions.Copy(&status.Conditions, generation, *other)
		return
	}

	conditions.Set(&status.Conditions, generation, corev1alpha1.ConditionTargetConnected, v.targetState.Ready, v.targetState.Reason, v.targetState.Message)
	if !v.targetState.Ready && v.dep != nil {
		conditions.SetUnknown(&status.Conditions, generation, corev1alpha1.ConditionAvailable, v.targetState.Reason, v.targetState.Message)
	}
}

// otherCluster returns the condition of the deployment that the connected target is not the cluster
// that has the objects; otherwise nil.
func otherCluster(v view) *metav1.Condition {
	if !v.targetState.Ready || v.dep == nil {
		return nil
	}
	c := meta.FindStatusCondition(v.dep.ObjectDeploymentStatus().Conditions, corev1alpha1.ConditionTargetConnected)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != corev1alpha1.ReasonOtherCluster {
		return nil
	}
	return c
}
