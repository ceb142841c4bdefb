package livestate

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The types here are what is decoded of CustomResourceDefinitions and
// APIServices. Schemas, which are most of a CRD, are skipped while reading.

var (
	crdResource        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServiceResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// definitions is the scheme of the types here.
var definitions = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	gv := crdResource.GroupVersion()
	scheme.AddKnownTypeWithName(gv.WithKind("CustomResourceDefinition"), &crd{})
	scheme.AddKnownTypeWithName(gv.WithKind("CustomResourceDefinitionList"), &crdList{})
	metav1.AddToGroupVersion(scheme, gv)
	gv = apiServiceResource.GroupVersion()
	scheme.AddKnownTypeWithName(gv.WithKind("APIService"), &apiService{})
	scheme.AddKnownTypeWithName(gv.WithKind("APIServiceList"), &apiServiceList{})
	metav1.AddToGroupVersion(scheme, gv)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}()

type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

func is(conditions []condition, name string) bool {
	return slices.Contains(conditions, condition{Type: name, Status: "True"})
}

type crd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Group    string `json:"group"`
		Scope    string `json:"scope"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		AcceptedNames struct {
			Kind   string `json:"kind"`
			Plural string `json:"plural"`
		} `json:"acceptedNames"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

func (c *crd) has(name string) bool { return is(c.Status.Conditions, name) }

// DeepCopyObject returns a shallow copy: what is decoded is never changed.
func (c *crd) DeepCopyObject() runtime.Object { d := *c; return &d }

type crdList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []crd `json:"items"`
}

// DeepCopyObject returns a shallow copy.
func (l *crdList) DeepCopyObject() runtime.Object { d := *l; return &d }

type apiService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		// Service is null for what the API server serves itself.
		Service *struct{} `json:"service"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// DeepCopyObject returns a shallow copy.
func (a *apiService) DeepCopyObject() runtime.Object { d := *a; return &d }

type apiServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []apiService `json:"items"`
}

// DeepCopyObject returns a shallow copy.
func (l *apiServiceList) DeepCopyObject() runtime.Object { d := *l; return &d }
