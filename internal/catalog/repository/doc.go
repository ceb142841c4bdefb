// Package repository reads and writes repositories of packages, and merges what several of them offer. It is pure.
//
//	file ◄──► Index ◄──► image with /repository/repository.yaml    Parse, Marshal, Image, Build
//	files ──► Content ──┐
//	files ──► Content ──┴─► AvailablePackages in parts             Read, Merge
//
// A repository file has a Repository as its first document, and then a RepositoryEntry for
// each package image: that is what dependencies are chosen from. The output is sorted. Digests
// are written without "sha256:", as by Package Operator, and read in both forms.
//
// A catalogue reads the same documents in files of any layout, and those of Carvel: Package and PackageMetadata of
// data.packaging.carvel.dev. Fetching one image or inline manifests is carried over, and so are dependencies in the form
// that was proposed for them; each other step of a template has a name in notCarriedOver, and the version cannot be
// installed.
//
// Invariants: a document that cannot be used is a problem with file, document and field,
// and hides no other; of two documents that contradict each other neither is offered, so
// that the order of files decides nothing; the result of a merge depends on the offers
// and the present owners alone, and is its own result when merged again; every part fits
// into limits.AvailablePartBytes, and a version above all others changes the last part
// alone. Limits: those of limits.RepositoryOffers and following for a catalogue, whose
// excess is an error about the whole where time or memory depend on it; limits.FileBytes,
// DocumentsPerFile and RepositoryVersions for a file.
package repository
