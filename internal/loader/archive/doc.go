// Package archive reads the files of a package from image layers or a folder, with bounded memory and time.
//
// Layers are streamed and applied as OCI specifies, with whiteouts. Everything outside /package is skipped, and so are dotted
// paths. Inside, only folders and regular files with portable names are accepted. Absolute and ".." paths are rejected
// everywhere.
//
// Specification: https://github.com/opencontainers/image-spec/blob/main/layer.md.
package archive
