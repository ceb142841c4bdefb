// Package deployment makes the ObjectDeployment of a Package from loaded content.
//
//	template.go   its content and settings; a digest of a template that ignores key order, null fields and defaults
//	slices.go     phases that are too large for it, and Secrets with sensitive values
//	drift.go      whether another client edited the template, or a crash left it incomplete
//	ownership.go  whether a deployment of the Package's name is its own
//
// Only Slices writes, with a client. The rest decides on its arguments alone.
package deployment
