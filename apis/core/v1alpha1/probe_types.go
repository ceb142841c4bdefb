package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ObjectSetProbe checks the objects that its selector picks. All of its probes
// have to be true for the object to count as available.
type ObjectSetProbe struct {
	// Probes to evaluate on each selected object.
	Probes []Probe `json:"probes"`

	// Selector picks the objects.
	Selector ProbeSelector `json:"selector"`
}

// ProbeSelector picks objects by kind and labels. Both have to match.
type ProbeSelector struct {
	// Kind picks objects by API group and kind.
	// +kubebuilder:validation:Required
	Kind *PackageProbeKindSpec `json:"kind"`

	// Selector further limits the objects by their labels.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// PackageProbeKindSpec is an API group and a kind. Versions are of no concern.
type PackageProbeKindSpec struct {
	// Group is the API group; empty for the core group.
	Group string `json:"group"`

	// Kind of the object.
	Kind string `json:"kind"`
}

// Probe is one check on an object. Exactly one field is set.
type Probe struct {
	// Condition is true when the object reports a condition of this type and
	// status for its current generation.
	// +optional
	Condition *ProbeConditionSpec `json:"condition,omitempty"`

	// FieldsEqual is true when both fields exist and are equal.
	// +optional
	FieldsEqual *ProbeFieldsEqualSpec `json:"fieldsEqual,omitempty"`

	// CEL is true when a rule in the Common Expression Language is.
	// +optional
	CEL *ProbeCELSpec `json:"cel,omitempty"`
}

// ProbeConditionSpec is a condition that an object has to report.
type ProbeConditionSpec struct {
	// Type of the condition.
	Type string `json:"type"`

	// Status that the condition has to have.
	// +kubebuilder:default="True"
	Status string `json:"status"`
}

// ProbeFieldsEqualSpec names two fields of an object.
type ProbeFieldsEqualSpec struct {
	// FieldA is the first field: a dotted path such as
	// .status.updatedReplicas, or a jq expression.
	FieldA string `json:"fieldA"`

	// FieldB is the second field, in the same form.
	FieldB string `json:"fieldB"`
}

// ProbeCELSpec is a rule in the Common Expression Language.
type ProbeCELSpec struct {
	// Rule is an expression of type bool; the object is the variable self.
	Rule string `json:"rule"`

	// Message is reported when the rule is false.
	Message string `json:"message"`
}
