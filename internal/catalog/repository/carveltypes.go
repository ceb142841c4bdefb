package repository

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// These are the documents of the group data.packaging.carvel.dev, as far as they are read.
type packageMetadata struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		DisplayName        string   `json:"displayName"`
		ShortDescription   string   `json:"shortDescription"`
		LongDescription    string   `json:"longDescription"`
		IconSVGBase64      []byte   `json:"iconSVGBase64"`
		ProviderName       string   `json:"providerName"`
		Categories         []string `json:"categories"`
		SupportDescription string   `json:"supportDescription"`
		Maintainers        []struct {
			Name string `json:"name"`
		} `json:"maintainers"`
	} `json:"spec"`
}

// carvelPackage is one version of a package.
type carvelPackage struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     carvelSpec        `json:"spec"`
}

// carvelSpec lacks fields that only kapp-controller uses, such as the schedule of its reconciles.
type carvelSpec struct {
	RefName                         string   `json:"refName"`
	Version                         string   `json:"version"`
	ReleaseNotes                    string   `json:"releaseNotes"`
	CapacityRequirementsDescription string   `json:"capacityRequirementsDescription"`
	Licenses                        []string `json:"licenses"`
	ReleasedAt                      string   `json:"releasedAt"`
	ValuesSchema                    *struct {
		OpenAPIv3 *runtime.RawExtension `json:"openAPIv3"`
	} `json:"valuesSchema"`
	IncludedSoftware               []includedSoftware `json:"includedSoftware"`
	KubernetesVersionSelection     *versionSelection  `json:"kubernetesVersionSelection"`
	KappControllerVersionSelection *versionSelection  `json:"kappControllerVersionSelection"`

	InstallationType string                     `json:"installationType"`
	Dependencies     []carvelDependency         `json:"dependencies"`
	Provides         []corev1alpha1.ProvidedAPI `json:"provides"`

	Template struct {
		Spec appSpec `json:"spec"`
	} `json:"template"`
}

// includedSoftware is a program in the package, for the release notes.
type includedSoftware struct {
	DisplayName string `json:"displayName"`
	Version     string `json:"version"`
	Description string `json:"description"`
}

// versionSelection is a range of versions of Kubernetes or kapp-controller.
type versionSelection struct {
	Constraints string `json:"constraints"`
}

// appSpec describes how a package is fetched, templated and deployed. Each step of the lists names
// one tool.
type appSpec struct {
	Fetch    []map[string]any `json:"fetch"`
	Template []map[string]any `json:"template"`
	Deploy   []map[string]any `json:"deploy"`
}
