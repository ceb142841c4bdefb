// Package patch changes rendered objects by the patches of a Package, as kustomize
// does: each patch changes the objects that its target matches, in order.
//
// A list is a JSON patch (RFC 6902). A mapping is merged: lists by the keys of their
// elements for kinds of Kubernetes, and replaced otherwise; null removes a field, and
// $patch: delete at the root deletes the object. A merge keeps the object's identity.
//
// The package is pure. Errors name the patch and never a value.
//
// Limits: limits.Patches, limits.PatchBytes, limits.ObjectBytes.
package patch
