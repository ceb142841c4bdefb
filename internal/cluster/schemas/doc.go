// Package schemas checks objects for types and unknown fields against the schemas that
// the API server publishes, before anything of a phase is written. It finds what the API
// server would refuse as "failed to create typed patch object", with the same code, and
// reports all of it at once.
//
//   - A [Checker] belongs to one API server. It reads the index of /openapi/v3 and the
//     documents of group versions, each once per hash.
//   - Only the definitions that a kind refers to are decoded, into a converter of that kind
//     (about 100 KiB for a Deployment). All is released after schemaIdle without use.
//   - The kept parts of documents are counted by a Checker of NewCounted: those of a
//     target are in the account of all targets.
//   - A kind that no document describes is not checked. Required fields are not either: a
//     webhook may set them.
//   - A document can be older than a CustomResourceDefinition: what the check refuses is
//     checked again with a fresh index, and a caller should repeat it after a pause.
//
// A [Static] checks against given definitions, as those of package bundled, and required
// fields and enums as well.
package schemas
