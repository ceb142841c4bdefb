// Package imagepolicy decides which images are trusted, and where they are pulled from.
//
// A Set has the policies of a cluster, one for each ImageConfig. For an image as it is written, and
// separately for each purpose, the policy with the longest prefix decides: the address and the pull
// secret for pulling it, and the signatures it needs. Prefixes are compared by whole segments, in
// the canonical form of the registry, so that no other spelling of a reference escapes a policy. A
// rewrite is applied once: its result is not looked up again.
//
// A Check verifies signatures of one digest, in both common forms: a Sigstore bundle that refers to
// the image (cosign 3), and the payload of simple signing at the tag sha256-….sig (cosign 2). One
// signature that one authority accepts suffices. Everyone with write access to the registry can
// choose these bytes. Each is bounded, and it is only a claim before its signature is verified. An
// attestation, which has another predicate, is not a signature. Keys, certificates and logs come
// only from the policy, and verification does not use the network.
//
// Formats: https://github.com/sigstore/protobuf-specs,
// https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md.
package imagepolicy
