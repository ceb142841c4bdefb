package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ObjectTemplateSpec is the desired state of an ObjectTemplate or
// ClusterObjectTemplate.
type ObjectTemplateSpec struct {
	// Template is a Go template that renders one object as YAML or JSON.
	Template string `json:"template"`

	// Sources are the objects that the template's values are read from.
	Sources []ObjectTemplateSource `json:"sources"`
}

// ObjectTemplateSource is one object that values are read from.
type ObjectTemplateSource struct {
	// APIVersion of the object.
	APIVersion string `json:"apiVersion"`

	// Kind of the object.
	Kind string `json:"kind"`

	// Namespace of the object. An ObjectTemplate reads its own namespace only; a
	// ClusterObjectTemplate needs it for namespaced kinds.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	Name string `json:"name"`

	// Items are the values to read.
	Items []ObjectTemplateSourceItem `json:"items"`

	// Optional allows the object to be missing.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// ObjectTemplateSourceItem is one value of a source.
type ObjectTemplateSourceItem struct {
	// Key is a JSONPath into the source, such as .data.host, or an expression of jq
	// behind "jq:".
	Key string `json:"key"`

	// Destination is a dotted path below .config in the template's context.
	Destination string `json:"destination"`
}

// ObjectTemplateStatus is the observed state of an ObjectTemplate or
// ClusterObjectTemplate.
type ObjectTemplateStatus struct {
	// Conditions of the template and of the object that it renders.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the ObjectTemplate that this status
	// describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ControllerOf is the object that was rendered.
	// +optional
	ControllerOf *ControlledObjectReference `json:"controllerOf,omitempty"`
}
