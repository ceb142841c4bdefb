// Command reference writes the pages of docs/reference that are generated from the code:
//
//	conditions.md  conditions and reasons, from the comments of apis/core/v1alpha1
//	limits.md      limits, from the constants of internal/limits and their comments
//	flags.md       flags of the manager, as --help prints them
//	commands.md    commands of kubectl package with their flags
//	lint-rules.md  rules of kubectl package lint
//	probes.md      phases and probes that follow from kinds, from internal/loader/presets
//
// and docs/alerts.md, from the rules of config/monitoring, and docs/metrics.md, from the table of
// internal/kube/metrics. It is part of "./task generate". A test fails if a page is stale.
package main
