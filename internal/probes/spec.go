package probes

import corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"

// This file is the only place that imports the API's types. They are plain values that do not
// mention an API group; copies of all of them would have to be converted field by field.
type (
	// Entry is an entry of availabilityProbes.
	Entry = corev1alpha1.ObjectSetProbe
	// Selector picks the objects of an Entry.
	Selector = corev1alpha1.ProbeSelector
	// GroupKind is the kind that a Selector picks.
	GroupKind = corev1alpha1.PackageProbeKindSpec
	// Probe is one check, by one of its fields.
	Probe = corev1alpha1.Probe
	// Condition is a check of a condition.
	Condition = corev1alpha1.ProbeConditionSpec
	// FieldsEqual is a check of two fields.
	FieldsEqual = corev1alpha1.ProbeFieldsEqualSpec
	// CEL is a check by a rule.
	CEL = corev1alpha1.ProbeCELSpec
)
