// Package archive reads the files of a package out of image layers or a
// folder, within fixed bounds of memory and time.
//
// Layers are streamed, gzip or zstd is recognised by its content, and layers
// are laid over each other as OCI says, whiteouts included. What lies outside
// /package is skipped, and so is every path with a segment that begins with a
// dot. Inside /package only folders and regular files are accepted: links,
// devices and FIFOs, and names that mean something else elsewhere (absolute or
// ".." paths, backslashes, control characters, text that is not UTF-8) are
// refused with the name of the entry. Absolute and ".." paths are refused
// outside /package as well, because where they lead is a matter of opinion.
//
// Limits: limits.ImageLayers, ImageBytes, LayerBytes (compressed),
// UnpackedBytes, ArchiveEntries (with what is skipped), PackageFiles,
// PackageBytes, FileBytes, PathBytes, PathDepth. See the OCI image layer
// specification, https://github.com/opencontainers/image-spec/blob/main/layer.md.
package archive
