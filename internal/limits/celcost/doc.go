// Package celcost bounds the size of what CEL expressions build.
//
// CEL counts a call after it ran, and a list by its first level, so that an
// expression can double a value with every few characters and compare such values
// for hours. Here every list and map of an expression is measured as a whole when
// it is made. Where others evaluate, as for the rules of a schema, [Estimate]
// bounds it beforehand.
//
// Limits: limits.ExpressionValues for one value, limits.ExpressionWork for all
// that one Budget is for.
package celcost
