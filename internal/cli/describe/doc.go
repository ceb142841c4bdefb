// Package describe tells what a package is: its phases, objects, probes,
// configuration, images, constraints, the rights that it gives away and those
// that its installation takes.
//
//	loaded package ─► Report ─► text for people, or JSON
//
// It is pure. What it cannot know without a cluster it guesses as kubectl does
// (the plural of a kind that the package does not define), or leaves out.
package describe
