// Package patch changes rendered objects as the patches of a Package say, with
// the rules of kustomize: each patch changes the objects that its target
// matches, in the order of the list, each on the outcome of those before it.
//
// A patch that is a list is a JSON patch (RFC 6902). A mapping is merged: lists
// whose elements have a key are merged by it where the kind is one of
// Kubernetes, and replaced otherwise; null removes a field, and the directive
// $patch: delete at the root leaves the object out. A merge never changes what
// an object is called.
//
// The package is pure. Patches come from whoever may change the Package, and
// are bounded nevertheless. Error texts name the patch and never a value.
//
// Limits: limits.Patches, limits.PatchBytes, limits.ObjectBytes.
package patch
