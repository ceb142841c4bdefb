// Package registry pulls package images.
//
// A reference is resolved to a digest (one HEAD), then manifest and layers are downloaded into a
// store on disk. Stored content is verified whenever it is read, so the resolved digest is the one
// that is unpacked.
//
// Signatures of a digest are read from the registry of its image, and are trusted as little as the
// image: package imagepolicy verifies them.
//
// Registries are not trusted. Every wait and every length is bounded. Plain HTTP and unverified
// certificates are accepted only from hosts named as insecure, credentials are sent only to the
// registry's own host, a public registry cannot redirect a request to a private address, and no
// error contains credentials or signed URLs. Certificate authorities and proxies of single
// registries apply to everything that their pulls reach, except to hosts with their own.
//
// Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md.
package registry
