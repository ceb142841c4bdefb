// Package probes reports whether a live object is available: it compiles the availability probes of
// a revision and evaluates them on objects.
//
//   - The results of all entries of a [Set] that select an object are combined by AND: Unknown
//     outweighs False, and False True. An object that nothing selects is True.
//   - A status with another observedGeneration than the object's is Unknown. A built-in workload
//     whose status lacks the field is not True, because its controller has not acted yet.
//
// Everything is pure. An evaluation beyond a limit ("Probe…") is Unknown. [Set.Needs] are the
// fields that probes read, and [Trim] reduces an object to them. Values of Secrets are never kept
// or quoted.
//
// [Compile] runs once for each revision, in the engine and in the checks of package loader, and
// refuses with a field and a remedy. The caches of live objects keep only the output of [Trim];
// [Set.EvaluateTrimmed] turns it into a [Result] at each event of a watch.
package probes
