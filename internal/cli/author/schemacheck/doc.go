// Package schemacheck checks the objects of a package against the schemas of
// their kinds, without a cluster.
//
//	kind of Kubernetes ─► bundled schemas       (internal/cluster/schemas/bundled)
//	kind of the package's own CRDs ─► their schema, with rules
//	kind of this engine ─► its CRDs              (config/crds)
//	any other ─► further locations, if there are any ─► else not checked
//
// What is wrong is of two degrees. An unknown field or a wrong type is what the
// engine itself refuses before it writes anything of a phase. A required field
// that is missing and a value that the field may not have are refused by the API
// server after admission, where a webhook may have changed them.
//
// A CustomResourceDefinition is checked by the rules of the API server as well.
package schemacheck
