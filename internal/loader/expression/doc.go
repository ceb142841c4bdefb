// Package expression evaluates the CEL expressions of a package: named conditions, path rules,
// condition annotations, and the template function cel.
//
// The environment is CEL without extensions, with the maps config, images, dependencies,
// environment and cond; package is a reserved word of CEL. An expression has to be a bool. A
// failure, such as a missing key, is an error and not false.
package expression
