// Package mutationcache keeps the response to each write until an informer's cache has
// it, as client-go's MutationCache does. A reconcile in between would otherwise write again,
// or create a second object. Unlike client-go's, it identifies objects by UID, and knows
// which objects this process deleted and which it created for an owner.
//
// Objects of one kind are ordered by resourceVersion, which is a number (KEP-5504). If it is
// not a number, the cached object wins.
package mutationcache
