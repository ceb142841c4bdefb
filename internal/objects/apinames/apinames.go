// Package apinames has the names of this API group, for callers of packages that know no group: the
// engine and the packages it imports.
package apinames

import (
	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
)

// Default are the names of this API group.
var Default = &objects.Names{
	GroupVersion: corev1alpha1.GroupVersion,
	Phases:       []string{corev1alpha1.ScopeNamespaced.Kind("ObjectSetPhase"), corev1alpha1.ScopeCluster.Kind("ObjectSetPhase")},
	Adopting:     []string{corev1alpha1.ScopeNamespaced.Kind("ObjectDeployment"), corev1alpha1.ScopeCluster.Kind("ObjectDeployment")},

	FieldManager:        corev1alpha1.FieldManager,
	FormerFieldManagers: corev1alpha1.LegacyFieldManagers(),
	Installers:          []string{corev1alpha1.HandoverFieldManager},

	ManagedLabel: corev1alpha1.CacheLabel, ManagedValue: corev1alpha1.CacheLabelValue,
	InheritedLabels: []string{
		corev1alpha1.PackageLabel, corev1alpha1.PackageInstanceLabel, corev1alpha1.PackageVersionLabel, corev1alpha1.PackageProviderLabel,
	},
	InstanceLabel: corev1alpha1.PackageInstanceLabel,

	RevisionAnnotation:            corev1alpha1.RevisionAnnotation,
	OwnersAnnotation:              corev1alpha1.OwnersAnnotation,
	AdoptedAnnotation:             corev1alpha1.AdoptedAnnotation,
	AdoptableByAnnotation:         corev1alpha1.AdoptableByAnnotation,
	CollisionProtectionAnnotation: corev1alpha1.CollisionProtectionAnnotation,
	DeletionPolicyAnnotation:      corev1alpha1.DeletionPolicyAnnotation,
	DeletionPolicyKeep:            corev1alpha1.DeletionPolicyKeep,
	OnImmutableAnnotation:         corev1alpha1.OnImmutableAnnotation,
	OnImmutableRecreate:           corev1alpha1.OnImmutableRecreate,
	IgnoredFieldsAnnotation:       corev1alpha1.IgnoredFieldsAnnotation,
	ExposeSecretValuesAnnotation:  corev1alpha1.ExposeSecretValuesAnnotation,
	AbandonTargetAnnotation:       corev1alpha1.AbandonTargetAnnotation,
}
