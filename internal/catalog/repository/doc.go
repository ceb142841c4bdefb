// Package repository reads and writes repositories of packages: lists of package
// images with their versions, that dependencies are chosen from.
//
//	file ◄──► Index ◄──► image with /repository/repository.yaml
//
// A repository is a YAML file whose first document is a Repository and whose
// others are RepositoryEntries, one for each package image.
// What is read is checked as a whole, and problems name file, document
// and line. What is written is sorted, so the same content is the same file.
//
// Digests are kept without "sha256:", as Package Operator writes them; both forms
// are read. Limits: limits.FileBytes, DocumentsPerFile, RepositoryVersions.
package repository
