// Package schemas checks objects for types and unknown fields against the
// schemas that the API server serves, before anything of a phase is written. It
// finds what the API server would refuse as "failed to create typed patch
// object", with the same code, and reports all of it at once.
//
// The model:
//
//   - A [Checker] belongs to one API server. It reads the index of /openapi/v3
//     and, by the hash URL that stands there, the documents of the group
//     versions that are asked for, each once per hash.
//   - Of a document only the definitions that a kind refers to are decoded, into
//     a converter for that kind (about 100 KiB for a Deployment).
//   - Index, documents and converters are forgotten after limits.SchemaIdle
//     without use: memory at rest is none.
//   - A document that is probably needed soon is prepared: an API server makes it
//     when it is first asked for.
//   - A kind that no document describes is not checked: the API server has the
//     last word anyway. Required fields are left to it too, for a webhook may
//     fill them in.
//
// A document can lag behind a CustomResourceDefinition that was changed a moment
// ago. What the check refuses is therefore looked at again with a fresh index
// before it is reported, and a caller should ask once more after a pause.
//
// A [Static] checks against definitions that are at hand, as those of package
// bundled, and can judge required fields and fixed values as well.
package schemas
