package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"

	"lockstep.run/lockstep/internal/limits"
)

var (
	crdResource        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServiceResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// definitions is the scheme of CustomResourceDefinitions and APIServices.
var definitions = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for gv, kind := range map[schema.GroupVersion]string{
		crdResource.GroupVersion(): "CustomResourceDefinition", apiServiceResource.GroupVersion(): "APIService",
	} {
		scheme.AddKnownTypeWithName(gv.WithKind(kind), &definition{})
		scheme.AddKnownTypeWithName(gv.WithKind(kind+"List"), &definitionList{})
		metav1.AddToGroupVersion(scheme, gv)
	}
	return scheme
}()

// definition is a CustomResourceDefinition without its schemas, or an APIService.
type definition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Group    string              `json:"group"`
		Scope    string              `json:"scope"`
		Versions []definitionVersion `json:"versions"`
		// Version and Service are fields of an APIService; Service is null if the API server serves
		// the group version itself.
		Version string    `json:"version"`
		Service *struct{} `json:"service"`
	} `json:"spec"`
	Status struct {
		AcceptedNames struct {
			Kind   string `json:"kind"`
			Plural string `json:"plural"`
		} `json:"acceptedNames"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// definitionBytes is the approximate memory of a definition without long texts.
const definitionBytes = 1 << 10

// reduce drops unused fields of a definition and returns its memory. It ignores names that no API
// server accepts.
func (d *definition) reduce() int64 {
	d.ObjectMeta = metav1.ObjectMeta{Name: d.Name, UID: d.UID, ResourceVersion: d.ResourceVersion, Generation: d.Generation}
	for i := range d.Status.Conditions {
		d.Status.Conditions[i].Message = ""
	}
	texts := []string{
		d.Name, string(d.UID), d.ResourceVersion, d.Spec.Group, d.Spec.Scope, d.Spec.Version, d.Status.AcceptedNames.Kind, d.Status.AcceptedNames.Plural,
	}
	for i := range d.Spec.Versions {
		texts = append(texts, d.Spec.Versions[i].Name)
	}
	size := int64(definitionBytes)
	for _, text := range texts {
		if len(text) > limits.TargetNameBytes {
			*d = definition{TypeMeta: d.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: "unnamed", ResourceVersion: d.ResourceVersion}}
			return definitionBytes
		}
		size += int64(len(text))
	}

	return size + int64(len(d.Status.Conditions)+len(d.Spec.Versions))*100
}

type definitionVersion struct {
	Name   string `json:"name"`
	Served bool   `json:"served"`
}

// DeepCopyObject returns a shallow copy: a decoded definition is never changed.
func (d *definition) DeepCopyObject() runtime.Object { c := *d; return &c }

type definitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []definition `json:"items"`
}

// DeepCopyObject returns a shallow copy.
func (l *definitionList) DeepCopyObject() runtime.Object { c := *l; return &c }

func (d *definition) is(condition string) bool {
	return meta.IsStatusConditionTrue(d.Status.Conditions, condition)
}

// kind returns the kind that a CRD serves; nil if it does not serve one yet.
func (d *definition) kind() (gk schema.GroupKind, kind *Kind) {
	names := d.Status.AcceptedNames
	gk = schema.GroupKind{Group: d.Spec.Group, Kind: names.Kind}
	var versions []string
	for _, v := range d.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}

	if names.Kind == "" || len(versions) > 0 && !d.is("Established") {
		return gk, nil
	}

	slices.SortFunc(versions, func(a, b string) int { return apiversion.CompareKubeAwareVersionStrings(b, a) })
	kind = &Kind{Watchable: true, Terminating: d.is("Terminating"), UID: d.UID, Generation: d.Generation}
	for _, v := range versions {
		kind.Versions = append(kind.Versions, mapping(gk.WithVersion(v), names.Plural, d.Spec.Scope == "Namespaced"))
	}

	return gk, kind
}

// offered returns the group version of an aggregated API; false if it is not available.
func (d *definition) offered() (gv schema.GroupVersion, ok bool) {
	return schema.GroupVersion{Group: d.Spec.Group, Version: d.Spec.Version}, d.Spec.Service != nil && d.is("Available")
}
