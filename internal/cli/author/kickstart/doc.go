// Package kickstart begins a package from Kubernetes objects: manifests, what a
// tool printed, or a rendered Helm chart. It is pure.
//
//	YAML ─► objects ─► Helm's hooks and policies ─► namespaces and scope
//	     ─► phases by kind ─► parameters ─► files, manifest with probes, test case
//
// The result is a package that passes validation and that its author goes on
// working on, so nothing is decided silently: what was dropped, moved or could
// not be known is in [Result.Notes].
//
// Phases follow from kinds; the order is such that what others need comes first
// and nothing waits for what a later phase brings (a claim on a volume is bound
// only when a pod uses it, so it is in the phase of the pods). Probes follow from
// kinds, too, as kstatus judges them; a kind that has nothing to wait for gets
// none.
//
// A package has a [Record] of the files as they were made. [Record.Upgrade] merges the
// changes of the next release into the package; see package threeway.
//
// Limits: those of package document for each document, limits.PackageObjects for
// their number; the caller bounds the size of the input.
package kickstart
