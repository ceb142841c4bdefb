// Package scaffold makes new packages for `kubectl package init`: one that
// validate, test and lint accept as it is, that installs, and that shows each
// part of the format once.
//
// The files are templates below files, with <% and %> around what is replaced,
// because {{ and }} belong to the package. Its fixtures are what its own test
// cases render to. The JSON Schema of the manifest comes along in a folder that
// is not part of the image, for editors.
package scaffold
