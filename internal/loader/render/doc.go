// Package render turns the files of a package into the files that it is made
// of for one installation: path rules are applied, and templates (*.gotmpl)
// are executed.
//
// Path rules come first: a file that they exclude is parsed for the templates
// it defines, and can be read by getFile, but is not executed. Templates are
// parsed and executed in the order of their paths, each on a copy of the
// context, so that the outcome depends on nothing but the input. getFile of a
// templated file returns its rendered text, whatever the order.
//
// Templates come from whoever built the package and are not trusted. They
// cannot reach files, environment, network, clock or randomness, and cannot
// loop, recurse or allocate without bound: parse trees are instrumented to
// count iterations and calls, every function is wrapped to bound what it reads
// and makes, and whatever is printed is measured first.
//
// Error texts name file, line and expression, and never the context.
//
// Limits: see "Limits of templates and CEL expressions" in package limits.
package render
