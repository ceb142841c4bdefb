// Package bundle copies packages, along with all images that they need to run, into one file, and
// from this file into another registry.
//
//	references ─► collect ─► images ─► Save ─► an OCI layout in a tar ─► Load ─► references below a prefix
//
// A bundle is an OCI image layout (image-spec, image-layout.md) as a tar file. Its index names each
// image by the reference that packages use, in the annotation org.opencontainers.image.ref.name.
// Equal content gives equal bytes. Signatures are stored with their images, as referrers or by the
// tag that cosign 2 gives them.
package bundle
