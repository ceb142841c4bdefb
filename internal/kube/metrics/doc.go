// Package metrics has every metric that the manager adds to those of its libraries, with name, labels, meaning and stability:
// docs/metrics.md is generated from this table.
//
// Metrics with names of packages are collected from caches and memory when they are scraped: a scrape sends no request, and
// there is no series of what was deleted. Values of labels are of a fixed set, or names of objects, versions and images, which
// are bounded; no metric has a series for each object of a package, and histograms have no names at all.
package metrics
