// Package drift compares a live object with its template by values, and prepares objects of earlier
// engines for server-side apply.
//
// A template is the complete object that is applied: it includes the engine's labels, annotations
// and controller reference, and stringData of a Secret is converted to data. Templates and live
// objects are decoded JSON.
//
//   - [Project] is the digest of the live values at the template's paths. It is compared with the
//     projection of the response to the last write, so additions by others never change it.
//   - [Matches] serves until such a digest exists, after a restart. True means that there is no
//     drift; false means that a dry run has to find out.
//   - [ListTypes] are the list and map types of one object, by its own managedFields.
//
// Project and Matches leave out status, the metadata that the API server sets, the annotation
// package-operator.run/revision, and all owner references except the template's controller. Numbers
// compare by value. A null in a template is an absent field, and an empty map or list equals an
// absent one.
//
// [Digest] hashes canonical JSON, so that it is independent of Go types and stays the same across
// releases.
package drift
