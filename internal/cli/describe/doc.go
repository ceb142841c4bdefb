// Package describe reports what a package is: its phases, objects, probes, configuration,
// images, constraints, the rights that it grants and those that its installation needs.
//
//	loaded package ─► Report ─► text, or JSON
//
// It is pure: plurals of kinds that the package does not define are guessed as kubectl does.
package describe
