// Package patch changes rendered objects by the patches of a Package, in order, as kustomize does.
// A list is a JSON patch (RFC 6902). A mapping is a strategic merge that keeps the object's
// identity; $patch: delete at its root deletes the object. Errors name the patch and never a value.
//
// [Compile] reads the patches once for each load, and [Set.Apply] runs for each object between its
// condition and its checks. Patches and objects have different authors. The product of their lists
// is bounded, because a merge compares elements of both.
package patch
