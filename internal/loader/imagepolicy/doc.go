// Package imagepolicy decides which images are trusted, and from where they are pulled.
//
// A Set has the policies of a cluster, one for each ImageConfig. For an image as it is written, and for each purpose by itself, the
// policy with the longest prefix counts: where it is pulled from, with which pull secret, and whose signature it needs. Prefixes are
// compared by whole segments, in the form that a registry is connected to, so that no other spelling of a reference escapes a policy.
// A rewrite is applied once: what it leads to is not looked up again.
//
// A Check verifies signatures of one digest, in both forms in use: a Sigstore bundle that refers to the image (cosign 3), and the
// payload of simple signing at the tag sha256-….sig (cosign 2). One signature that one authority accepts suffices. Who can write
// to the registry chooses these bytes: each is bounded, read as a claim, and says nothing before its signature is verified. An
// attestation, which has another predicate, is no signature. Keys, certificates and logs are those of the policy alone: no network is
// asked.
//
// Formats: https://github.com/sigstore/protobuf-specs, https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md.
package imagepolicy
