// Package schemas checks objects for types and unknown fields against the schemas that
// the API server publishes, before anything of a phase is written. It finds what the API
// server would refuse as "failed to create typed patch object", with the same code, and
// reports all of it at once.
//
//   - A [Checker] belongs to one API server. It reads the index of /openapi/v3 and the
//     documents of group versions, each once per hash.
//   - Only the definitions that a kind refers to are decoded, into a converter of that kind
//     (about 100 KiB for a Deployment). All is released after schemaIdle without use.
//   - A Checker of NewCounted counts the kept parts of documents: a target's count in
//     the account of all targets.
//   - A kind without a document is not checked. Neither are required fields, because a
//     webhook can set them.
//   - A document can be older than a CustomResourceDefinition: a refused object is checked
//     again with a fresh index, and a caller should repeat the check after a pause.
//
// A [Static] checks against given definitions, such as package bundled's, and checks
// required fields and enums as well.
package schemas
