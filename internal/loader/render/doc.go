// Package render turns the files of a package into the files of one installation. It applies path
// rules and executes templates (*.gotmpl) in the order of their paths, each on a copy of the
// context.
//
// Templates are not trusted. They cannot access files, environment, network, clock or randomness,
// and cannot loop, recurse or allocate without limit: injected nodes count iterations and calls,
// every function is wrapped to bound its input and output, and values are measured before they are
// printed.
//
// Errors contain file, line and expression, and never the context.
//
// [Render] gets the files, the context and the path rules from package loader, and returns the
// remaining files with the output of templates in their place. [Object] executes the template of an
// ObjectTemplate in the same way, without files. guard.go bounds functions, scan.go and tree.go the
// language itself.
package render
