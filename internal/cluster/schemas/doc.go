// Package schemas checks objects for types and unknown fields against the schemas that the API
// server publishes, before any object of a phase is written. With the API server's own code, it
// finds the problems that the API server would report as "failed to create typed patch object", and
// reports all of them at once.
//
//   - A [Checker] belongs to one API server. It reads the index of /openapi/v3 and the
//     documents of group versions, each once per hash.
//   - Only the definitions that a kind refers to are decoded, into a converter of that kind
//     (about 100 KiB for a Deployment). Everything is released after schemaIdle without use.
//   - A Checker of NewCounted counts the kept parts of documents; a target's documents belong to
//     the account of all targets.
//   - A kind without a document is not checked. Neither are required fields, because a
//     webhook can set them.
//   - A document can be older than a CustomResourceDefinition: a refused object is checked
//     again with a fresh index, and a caller should repeat the check after a pause.
//
// A [Static] checks against given definitions, such as package bundled's, and checks
// required fields and enums as well.
package schemas
