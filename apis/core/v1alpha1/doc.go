// Package v1alpha1 holds the kinds of the API group package-
// operator.run/v1alpha1.
//
// A Package names an image and is loaded into an ObjectDeployment; each change
// of an ObjectDeployment's template makes an ObjectSet, one immutable revision;
// an ObjectSet has phases, and phases have objects, inline or in ObjectSlices.
// ObjectSetPhase is a phase handed to another controller by its class,
// ObjectTemplate renders one object from others, and HostedClusterPackage rolls
// a Package out to HyperShift's hosted clusters. ImageConfig says whose
// signature images need, and from where they are pulled.
//
// Every kind but HostedClusterPackage and ImageConfig exists twice, namespaced and
// cluster-scoped. The twins share their spec and status structs, and the
// Generic interfaces of this package reach them, so that one implementation
// serves both.
//
// Invariants: the JSON form is Package Operator's, so that objects written for
// it are valid here; every field beyond it is optional. Times are in seconds
// where a field's name ends in Seconds. Limits stand at the fields.
//
// +kubebuilder:object:generate=true
// +groupName=package-operator.run
package v1alpha1
