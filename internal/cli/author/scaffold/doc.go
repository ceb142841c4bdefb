// Package scaffold creates the packages of `kubectl package init`, which validate, test and
// lint accept, and which show each part of the format once.
//
// The files are templates below files, with the delimiters <% and %> because {{ and }}
// belong to the package. The fixtures are rendered from them, and editors get the JSON
// Schema of the manifest in a folder that is not part of the image.
package scaffold
