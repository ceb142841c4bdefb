// Package document reads YAML files of a package: it splits them into
// documents, bounds what each may cost, and turns each into the values of JSON.
//
// Scalars are read as Kubernetes tools read them (YAML 1.1 booleans such as
// yes and on, octals, merge keys, keys turned into text), so that a file means
// what it means to kubectl. Beyond that it is strict: a duplicate key, a tag
// of one's own, NaN, and text that is not UTF-8 are problems with a line.
//
// Limits: limits.DocumentBytes, DocumentMarks (before parsing), DocumentNodes,
// DocumentTextBytes (aliases expanded), DocumentDepth, DocumentsPerFile.
package document
