// Package load makes the objects of a package from its image: it pulls and renders in the background.
//
//	fingerprint.go    identifies all that a package is rendered from; equal to the recorded one, nothing is loaded
//	loads.go          one attempt of each Package at a time: when it starts, is repeated, and ends
//	admission.go      the memory and the place that an attempt waits for once it is downloaded
//	pipeline.go       credentials and verification of an image; render.go: from its files to Content
//	tags.go           whether a tag has moved
//	installations.go  which Packages install a package that may be installed once
//	change.go         who changed the spec that is loaded
//
// The end of a load enqueues the Package. A failed one is repeated, longer after each failure, unless the package itself is wrong. It
// writes nothing: a large load is started by Resume, once the controller has recorded it in the status.
package load
