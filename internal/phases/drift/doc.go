// Package drift judges by values whether a live object still is what its
// template says, and prepares objects of earlier engines for
// server-side apply.
//
// A template is the complete object that is applied: with the engine's labels,
// annotations and controller reference, and a Secret's stringData turned into
// data. Templates and live objects are decoded JSON: maps, lists, strings,
// booleans, int64 and float64.
//
// The model:
//
//   - [Project] is the digest of the live values on the template's own paths. It
//     is compared with the projection of the response to our own last write:
//     what others add beside the template's paths never changes it.
//   - [Matches] is for the first look after a restart, when no such projection
//     exists: true means no drift, false means "ask the API server by a dry run".
//   - [Shapes] holds what is known about the lists of a kind, learned from
//     managedFields: an element of an associative list is found by its keys, a
//     value of a set by itself, any other list counts as a whole.
//
// Both leave out: status, what the API server sets in metadata, the annotation
// package-operator.run/revision, and all owner references but the template's
// controller. Numbers compare by value. A null in a template is an absent field,
// an empty map or list is the same as none.
//
// Everything here is pure, but for Shapes, which remembers. [Digest] hashes
// canonical JSON: sorted keys, one form per number, so that a digest depends on
// no Go type and stays the same over releases.
package drift
