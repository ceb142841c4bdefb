// Package schemacheck checks the objects of a package against the schemas of their kinds, without a
// cluster.
//
//	kind of Kubernetes ─► bundled schemas       (internal/cluster/schemas/bundled)
//	kind of the package's own CRDs ─► their schema, with rules
//	any other ─► further locations, if any ─► else not checked
//
// The engine rejects unknown fields and wrong types before it writes any object of a phase. Missing
// fields and invalid values are doubtful: the API server refuses them after admission, and a
// webhook might correct them first. A CustomResourceDefinition is also checked by the API server's
// own rules.
package schemacheck
