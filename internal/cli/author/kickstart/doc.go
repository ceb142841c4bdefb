// Package kickstart makes a package from Kubernetes objects: manifests, the output of a tool, a
// rendered Helm chart, or a bundle of the Operator Lifecycle Manager.
//
//	YAML ─► objects ─► Helm's hooks and policies ─► namespaces and scope
//	     ─► phases by kind ─► parameters ─► files, manifest with probes, test case
//
// The result passes validation. [Result.Notes] name the objects and fields that were dropped, moved
// or unknown. Phases and probes follow from kinds. No probe waits for an object of a later phase,
// or for an object that its own fields hold back. The probes are kstatus's.
//
// The same input and options give the same files, so version control can compare and merge the
// files of two releases.
//
// The limits are in package document and in limits.PackageObjects. The caller limits the size of
// the input.
package kickstart
