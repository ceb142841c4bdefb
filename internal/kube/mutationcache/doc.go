// Package mutationcache keeps the response to each write until an informer's cache has
// it, as client-go's MutationCache. A reconcile in between would otherwise write again,
// or create a second object. Unlike client-go's it knows objects by their UID, which
// were deleted by this process, and which were created for an owner.
//
// Objects of one kind are ordered by resourceVersion, a number (KEP-5504); where it is
// none, the cache counts.
package mutationcache
