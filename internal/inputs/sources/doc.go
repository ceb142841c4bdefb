// Package sources reads the Secrets and ConfigMaps that a Package names: values of its
// configuration, and patches.
//
//	spec ─► RefsOf ─► refs ─► Watches ─► versions, part of what the package is rendered from
//	                 └──► Read ────► values, for one rendering
//
// The metadata of each source is watched while a Package names it. The first limits.SourceWatches
// of a namespace have their own watches; the others share a watch of their kind there. Content is
// read for one rendering and then forgotten. Changes are detected by versions instead of digests of
// values, because a digest would confirm a guess of a value. Errors never quote content.
//
// Later sources override earlier ones, and spec.config overrides all of them. Objects are merged by
// key.
package sources
