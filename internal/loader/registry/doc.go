// Package registry pulls package images.
//
// A reference is resolved to a digest (one HEAD), then manifest and layers are downloaded into a store on disk. Stored
// content is verified whenever it is read, so the digest that was resolved is the one that is unpacked.
//
// Signatures of a digest are read from the registry of its image, and are as little trusted: package imagepolicy verifies them.
//
// A registry is not trusted. Every wait and every length is bounded, plain HTTP and unverified certificates are accepted
// from hosts named as insecure only, credentials go to the registry's own host, a public registry cannot send a request
// to a private address, and no error contains credentials or signed URLs. Certificate authorities and proxies of single
// registries hold for all that their pulls reach, except hosts with their own.
//
// Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md.
package registry
