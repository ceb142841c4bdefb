// Package sources reads the Secrets and ConfigMaps that a Package names: values of its configuration, and patches.
//
//	spec ─► Of ─► refs ─► Watches ─► versions, part of what the package is rendered from
//	                 └──► Read ────► values, for one rendering
//
// The metadata of each is watched while a Package names it: of limits.SourceWatches of a namespace one by one, of others
// by a watch of their kind there. Content is read for one rendering and forgotten: versions, and no digests of values,
// report changes, so that no guess of a value can be checked. Errors never quote content.
//
// Later sources override earlier ones, spec.config all of them; objects are merged by key.
package sources
