// Package archive reads the files of a package from image layers or a folder, with bounded memory
// and time.
//
// Layers are streamed and applied as OCI specifies, with whiteouts. It skips everything outside
// /package, and dotted paths. Inside /package, it accepts only folders and regular files with
// portable names. It rejects absolute and ".." paths everywhere.
//
// Specification: https://github.com/opencontainers/image-spec/blob/main/layer.md.
//
// [ReadFolder] serves commands; package registry feeds an [Unpacker] with the layers from its store,
// and package fetch uses one for archives of repositories, with its own [Selection]. The result is
// [Files], in memory and read-only.
package archive
