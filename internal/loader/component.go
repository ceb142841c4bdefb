package loader

import (
	"maps"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/violation"
)

// componentsFolder has one folder per component, each with a manifest of its own.
const componentsFolder = "components"

// unit is the part of a package that is loaded: its root or one of its components.
type unit struct {
	files     Files
	component string
	name      string
	result    *manifest.Result
	problems  violation.Violations
}

// readUnit reads the manifest of the root or of a component. The result is nil if the manifest
// cannot be read; problems then explain why.
func readUnit(files Files, component string) *unit {
	if len(files) == 0 {
		return &unit{problems: violation.Violations{{Reason: violation.ReasonNoFiles, Remedy: "The files of a package belong into the folder /package."}}}
	}

	result, problems := manifest.Read(files, "")
	multi := result != nil && result.Manifest.Spec.Components != nil
	if component == "" {
		// Templates and objects of components do not belong to the root, even though they are below
		// it.
		if multi {
			files = withoutComponents(files)
		}
		u := &unit{files: files, result: result, problems: problems}
		if result != nil {
			u.name = result.Manifest.Name
		}
		return u
	}

	if result == nil {
		return &unit{problems: problems}
	}
	if !multi {
		return &unit{component: component, problems: violation.Violations{violation.Violation{Reason: violation.ReasonComponentsDisabled}.
			Because("Remove spec.component of the Package; this package has no components.", "component %q is asked for", component)}}
	}

	root := result.Manifest.Name
	u := readComponent(files, component)
	u.name = root + "/" + component
	return u
}

// readComponent reads the manifest in the folder of a component. The name comes from a user, so it
// must not lead to another folder.
func readComponent(files Files, component string) *unit {
	u := &unit{component: component}
	if strings.ContainsAny(component, `/\`) || strings.HasPrefix(component, ".") {
		u.add(violation.Violation{Reason: violation.ReasonComponentPath}.Because("", "%q is not a valid folder name", component))
		return u
	}

	u.files = files.Below(componentsFolder + "/" + component)
	if len(u.files) == 0 {
		names := componentNames(files)
		u.add(violation.Violation{Reason: violation.ReasonComponentNotFound}.
			Because(violation.Suggest(component, names, "The package has: "+violation.Listed(names)+"."), "component %q", component))
		return u
	}

	u.result, u.problems = manifest.Read(u.files, component)
	if u.result != nil && u.result.Manifest.Spec.Components != nil {
		u.add(u.result.At(violation.ReasonComponentsNested, "spec.components"))
	}

	return u
}

func (u *unit) add(v violation.Violation) { u.problems = append(u.problems, v) }

// mark sets the component on violations, in place.
func (u *unit) mark(vs violation.Violations) violation.Violations {
	for i := range vs {
		vs[i].Component = u.component
	}
	return vs
}

// withoutComponents returns the files outside of the components' folder.
func withoutComponents(files Files) Files {
	out := maps.Clone(files)
	maps.DeleteFunc(out, func(p string, _ []byte) bool { return strings.HasPrefix(p, componentsFolder+"/") })
	return out
}

// componentNames returns the sorted folders below the components' folder, with or without a
// manifest.
func componentNames(files Files) []string {
	var names []string
	for p := range files {
		rest, ok := strings.CutPrefix(p, componentsFolder+"/")
		if name, _, inFolder := strings.Cut(rest, "/"); ok && inFolder && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// strayComponentFiles returns a problem for each file directly in the components' folder, which
// belongs to no component.
func strayComponentFiles(files Files) violation.Violations {
	var out violation.Violations
	for p := range files {
		if rest, ok := strings.CutPrefix(p, componentsFolder+"/"); ok && !strings.Contains(rest, "/") {
			out = append(out, violation.Violation{Reason: violation.ReasonComponentsStray, Path: p, Remedy: "Move it into the folder of a component."})
		}
	}
	slices.SortFunc(out, func(a, b violation.Violation) int { return archive.ComparePaths(a.Path, b.Path) })
	return out
}

// Part is the root of a package or one of its components.
type Part struct {
	// Component is empty for the root.
	Component string
	// Folder is the folder of the part; empty for the root.
	Folder string
	// Files are the part's files by their path below Folder. The root does not have the components'
	// files.
	Files Files
}

// Parts returns the root of a package and its components. The lock of each part is separate. A
// package whose manifest cannot be read has one part.
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
