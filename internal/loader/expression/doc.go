// Package expression evaluates the CEL expressions of a package: named
// conditions, path rules, condition annotations, and the template function
// cel.
//
// The environment is plain CEL without extensions. Its variables are config,
// images, dependencies and environment, each a map, and cond, a map of the
// named conditions. A leading dot is accepted, as in templates. The variable
// package is declared, as by Package Operator, but package is a reserved word
// of CEL: no expression can name it, there or here. Every
// expression has to be a bool; one that fails, for example over a missing key,
// is an error and not false.
//
// Limits: limits.ExpressionBytes, limits.ExpressionCost; what expressions build is
// bounded by package celcost.
package expression
