// Package drift compares a live object with its template by values, and prepares objects
// of earlier engines for server-side apply.
//
// A template is the complete object that is applied: with the engine's labels,
// annotations and controller reference, and a Secret's stringData turned into data.
// Templates and live objects are decoded JSON.
//
//   - [Project] is the digest of the live values on the template's paths. It is compared
//     with that of the response to the last write: what others add never changes it.
//   - [Matches] is for the time before there is such a digest, after a restart. True
//     means no drift, false that a dry run has to find out.
//   - [ListTypes] are the list and map types of one object, by its own managedFields.
//
// Project and Matches leave out status, what the API server sets in metadata, the
// annotation package-operator.run/revision, and all owner references but the template's
// controller. Numbers compare by value. A null in a template is an absent field, an empty
// map or list is the same as none.
//
// [Digest] hashes canonical JSON, so that it depends on no Go type and stays the same
// over releases.
package drift
