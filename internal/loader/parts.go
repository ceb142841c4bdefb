package loader

import (
	"lockstep.run/lockstep/internal/loader/manifest"
)

// Part is the root of a package or one of its components.
type Part struct {
	// Component is empty for the root.
	Component string
	// Folder that the part lies in; empty for the root.
	Folder string
	// Files by their path below Folder; those of components are not the root's.
	Files Files
}

// Parts returns the root of a package and its components.
func Parts(files Files) []Part {
	result, _ := manifest.Read(files, "")
	if result == nil || result.Manifest.Spec.Components == nil {
		return []Part{{Files: files}}
	}
	parts := []Part{{Files: withoutComponents(files)}}
	for _, name := range componentNames(files) {
		folder := componentsFolder + "/" + name
		parts = append(parts, Part{Component: name, Folder: folder, Files: files.Below(folder)})
	}
	return parts
}
