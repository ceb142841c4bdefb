// Package keyless signs by certificates that a certificate authority of Sigstore issues to the identity of an OIDC token.
//
// Each signature has a key pair of its own, which is in memory alone and is dropped with the signature. The authority
// certifies its public key for the identity, a transparency log records the signature, and timestamp authorities say
// when it was made. Signatures are Sigstore bundles, as package imagepolicy verifies them.
//
// The token is sent to the certificate authority alone, over TLS, and is in no error. What the services answer may be
// anything: it is bounded in bytes and time, redirects are not followed, and a certificate of another key is refused.
// The client that verifies the signature decides whether it trusts authority and log.
package keyless
