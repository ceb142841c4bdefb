// Package metrics has every metric of the manager that its libraries do not have, with name,
// labels, meaning and stability. docs/metrics.md is generated from this table.
//
// Metrics with names of packages are collected from caches and memory when they are scraped. So a
// scrape sends no request, and a deleted package has no series. Values of labels come from a fixed
// set, or are bounded names of objects, versions and images. No metric has a series per object of a
// package, and histograms have no names at all.
package metrics
