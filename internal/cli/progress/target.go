package progress

import (
	"cmp"
	"fmt"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/internal/objects"
)

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
