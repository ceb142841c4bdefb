// Package load makes the objects of a package from its image: it pulls and renders in the
// background.
//
//	fingerprint.go    identifies the whole input of a rendering; if it equals the recorded one, the package is not loaded
//	loads.go          one attempt of each Package at a time: when it starts, is repeated, and ends
//	admission.go      the memory and the place that an attempt waits for once it is downloaded
//	pipeline.go       credentials and verification of an image; render.go: from its files to Content
//	tags.go           whether a tag has moved
//	installations.go  which Packages install a package that can be installed only once
//
// The end of a load enqueues the Package. A failed load is repeated, later after each failure,
// unless the package itself is wrong. The package does not write: Resume starts a large load once
// the controller has recorded it in the status.
package load
