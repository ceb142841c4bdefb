// Package fetch reads the content of a PackageRepository from where its source says: an image, a file on a web server, a
// git repository, or the source itself.
//
//	Source ──► Fetch ──► Result: YAML and JSON files by path, and a digest of them
//
// A fetch with the Validator of an earlier Result is conditional: one small request if nothing changed.
//
// No source is trusted. Bytes, files, time and redirects are bounded (package limits), archives are unpacked without
// links and without paths out of them, and every connection is checked by the address that is dialled: loopback,
// link-local, unspecified and multicast addresses, and private ones for sources of a namespace, are refused unless
// Options.Policy permits them. Credentials go to the host of the source alone, by https or ssh, and into no error. No
// message has a digest of what a server answered, by which its content could be guessed.
package fetch
