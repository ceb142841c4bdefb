// Package v1alpha1 holds the kinds of the API group
// package-operator.run/v1alpha1.
//
// A Package names an image, which the manager loads into an ObjectDeployment.
// Each change of an ObjectDeployment's template creates an ObjectSet, which is
// one immutable revision. An ObjectSet has phases, and a phase has objects,
// inline or in ObjectSlices. An ObjectSetPhase is a phase that another controller
// rolls out. An ObjectTemplate renders one object from others, and a
// HostedClusterPackage rolls a Package out to HyperShift's hosted clusters. An
// ImageConfig requires signatures of images and names mirrors to pull them from.
//
// Every kind except HostedClusterPackage and ImageConfig exists twice, namespaced
// and cluster-scoped. Both have the same spec and status.
//
// The JSON form is Package Operator's, so its objects are valid here. Every
// additional field is optional. A field whose name ends in Seconds is a number of
// seconds.
//
// +kubebuilder:object:generate=true
// +groupName=package-operator.run
package v1alpha1
