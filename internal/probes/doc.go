// Package probes reports whether a live object is available: it compiles the
// availability probes of a revision and evaluates them on objects.
//
// The model, after Package Operator:
//
//   - A [Set] holds all probes of one revision. An object is judged by every
//     entry whose kind and labels select it; the verdicts are combined by AND,
//     where Unknown outweighs False and False outweighs True. Only True counts
//     as success. An object that nothing selects is True.
//   - A status whose observedGeneration is not the object's generation is
//     Unknown, whatever it says.
//   - A probe compares a condition (condition), two fields (fieldsEqual: dotted
//     paths, or jq), or evaluates a rule (CEL).
//
// Everything here is pure: a verdict depends on the probes and the object
// alone, never on clock, environment or other objects. Work per evaluation is
// bounded (package limits, "Probe…"); an evaluation that hits a bound is
// Unknown and its message names the bound.
//
// [Set.Needs] says which fields the probes of a kind read and [Trim] cuts an
// object down to them, so that a cache need not keep whole objects. Values of
// Secrets are never kept and never quoted in a message.
package probes
