// Package repository reads and writes repositories of packages, that dependencies are chosen from.
//
//	file ◄──► Index ◄──► image with /repository/repository.yaml
//
// The first document of the file is a Repository, the others are RepositoryEntries, one for each package image. What is
// written is sorted. Digests are written without "sha256:", as by Package Operator, and read in both forms. Limits:
// limits.FileBytes, DocumentsPerFile, RepositoryVersions.
package repository
