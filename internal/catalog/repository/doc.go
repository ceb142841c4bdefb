// Package repository reads and writes repositories of packages, and merges the offers of several.
// It is pure.
//
//	file ◄──► Index ◄──► image with /repository/repository.yaml    Parse, Marshal, Image, Build
//	files ──► Content ──┐
//	files ──► Content ──┴─► AvailablePackages in parts             Read, Merge
//
// A repository file has a Repository as its first document, and then a RepositoryEntry for each
// package image. Dependencies are chosen from these. The output is sorted. Digests are written
// without "sha256:", as in Package Operator, and read in both forms.
//
// A catalogue reads the same documents in files of any layout, as well as Carvel's: Package and
// PackageMetadata of data.packaging.carvel.dev. A template that fetches one image or inline
// manifests is carried over, as are dependencies in the form that was proposed for Carvel. Any
// other step of a template is named in notCarriedOver, and the version cannot be installed.
//
// Invariants: an unusable document is a problem with file, document and field, and hides no other
// document. If two documents contradict each other, neither is offered, so that the order of files
// does not matter. The result of a merge depends only on the offers and the present owners, and
// merging it again does not change it. Every part fits into limits.AvailablePartBytes, and a
// version above all others changes only the last part.
//
// Limits: limits.RepositoryOffers and the constants after it bound a catalogue. Exceeding them is
// an error about the whole if time or memory depend on it. limits.FileBytes, DocumentsPerFile and
// RepositoryVersions bound a file.
package repository
