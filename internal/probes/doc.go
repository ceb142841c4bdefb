// Package probes reports whether a live object is available: it compiles the
// availability probes of a revision and evaluates them on objects.
//
//   - A [Set] holds all probes of a revision. The results of all entries that select
//     an object by kind and labels are combined by AND: Unknown outweighs False, and
//     False True. An object that nothing selects is True.
//   - A status with another observedGeneration than the object's is Unknown.
//   - A probe checks a condition, compares two fields (fieldsEqual: dotted paths, or
//     jq), or evaluates a CEL rule.
//
// Everything is pure. Work is bounded (package limits, "Probe…"); an evaluation
// beyond a limit is Unknown and its message names the limit.
//
// [Set.Needs] are the fields that the probes of a kind read, and [Trim] reduces an
// object to them for a cache. Values of Secrets are never kept or quoted.
package probes
