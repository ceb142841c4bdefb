// Package registry pulls package images.
//
// The way of an image: reference → digest (one HEAD) → manifest and layers,
// each downloaded into a store on disk, checked against its digest and size →
// files. A digest is downloaded once, however many ask for it at a time, and
// not again while the store keeps it; what the store holds is checked against
// its digest whenever it is read, so the digest that was resolved is the one
// that is unpacked.
//
// A registry is not trusted. Every wait and every length is bounded, plain HTTP
// and certificates that do not verify are accepted only from hosts that were
// named, credentials go to the registry's own host alone, a public registry
// cannot send a request to a private address, and no error text holds
// credentials or signed URLs. One registry that hangs holds up only its own
// images: pulls are counted per host. Connections of a pull serve the next one of
// the same registry; which addresses they may lead to is found out anew with each
// new connection to it.
//
// Limits: see "Limits of registries" in package limits. Protocol: OCI
// distribution specification 1.1,
// https://github.com/opencontainers/distribution-spec/blob/main/spec.md.
package registry
