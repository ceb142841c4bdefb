// Package sources reads the Secrets and ConfigMaps that a Package names: the
// values of its configuration, and patches.
//
//	spec ─► Of ─► refs ─► Watches ─► versions, part of what the package is rendered from
//	                 └──► Read ────► values, for one rendering
//
// Of each object a watch of its metadata is kept while a Package names it, one
// for all of its users; it costs no request at rest. The content is read when a
// package is rendered and forgotten afterwards: versions, and no digests of
// values, say whether it changed. So nothing that could be compared with a guess
// of a secret value leaves this process.
//
// Errors name the reference and the place, never the content.
//
// Merging: sources in their order, each over those before it, spec.config over
// all; objects key by key, everything else as a whole.
package sources
