// Package kickstart begins a package from Kubernetes objects: manifests, the output of a
// tool, a rendered Helm chart, or a bundle of the Operator Lifecycle Manager.
//
//	YAML ─► objects ─► Helm's hooks and policies ─► namespaces and scope
//	     ─► phases by kind ─► parameters ─► files, manifest with probes, test case
//
// The result passes validation. [Result.Notes] name objects and fields that were dropped,
// moved or could not be known. Phases and probes follow from kinds: nothing waits for
// what a later phase brings, nor for what its own fields hold back, and probes are those
// of kstatus.
//
// The same input and options give the same files, so that the files of two releases can be
// compared and merged by version control.
//
// The limits are those of package document and limits.PackageObjects; the caller limits the
// size of the input.
package kickstart
