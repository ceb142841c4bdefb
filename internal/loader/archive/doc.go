// Package archive reads the files of a package from image layers or a folder, with
// bounded memory and time.
//
// Layers are streamed, their compression (gzip, zstd) is detected, and they are
// applied as OCI says, with whiteouts. Everything outside /package is skipped, and so
// are paths with a leading dot in a segment. Inside, only folders and regular files
// with portable names (UTF-8, no backslash, no control characters) are accepted.
// Absolute and ".." paths are rejected everywhere.
//
// Limits: limits.ImageLayers, ImageBytes, LayerBytes (compressed), UnpackedBytes,
// ArchiveEntries (with what is skipped), PackageFiles, PackageBytes, FileBytes,
// PathBytes, PathDepth. Specification:
// https://github.com/opencontainers/image-spec/blob/main/layer.md.
package archive
