// Package describe reports the content of a package: its phases, objects, probes, configuration,
// images, constraints, the rights that it grants and the rights that its installation needs.
//
//	loaded package ─► Report ─► text, or JSON
//
// It is pure. It guesses plurals of kinds that the package does not define, as kubectl does.
package describe
