// Package fetch reads the content of a PackageRepository from its source: an image, a file on a web
// server, a git repository, or the source itself.
//
//	Source ──► Fetch ──► Result: YAML and JSON files by path, and a digest of them
//
// A fetch with the Validator of an earlier Result is conditional: if nothing has changed, it takes
// one small request.
//
// No source is trusted. Bytes, files, time and redirects are bounded (package limits). Archives are
// unpacked without links and without paths that lead out of them. Every connection is checked by
// the address that is dialled: loopback, link-local, unspecified and multicast addresses are
// refused unless Options.Policy permits them. For sources of a namespace, private addresses are
// refused as well. Credentials are sent only to the host of the source, only by https or ssh, and
// do not appear in errors. No message has a digest of a server's answer, because its content could be guessed from
// that.
package fetch
