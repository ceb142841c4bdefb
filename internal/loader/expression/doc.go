// Package expression evaluates the CEL expressions of a package: named conditions, path rules,
// condition annotations, and the template function cel.
//
// The environment is CEL without extensions, with the maps config, images, dependencies,
// environment and cond; package is a reserved word of CEL. An expression has to be a bool. A
// failure, such as a missing key, is an error and not false.
//
// An [Evaluator] belongs to one load. Its limits add up over all expressions of the package, since
// an author can write many cheap ones. Package celcost bounds the values that an expression builds,
// and package regexcost its regular expressions; CEL itself counts the cost only after such a step.
package expression
