// Package expression evaluates the CEL expressions of a package: named conditions,
// path rules, condition annotations, and the template function cel.
//
// The environment is CEL without extensions. Its variables are the maps config,
// images, dependencies, environment and cond (the named conditions). package is
// declared as by Package Operator, but is a reserved word of CEL. An expression has to
// be a bool; a failure, such as a missing key, is an error and not false.
//
// Limits: limits.ExpressionBytes, limits.ExpressionCost, and those of package celcost.
package expression
