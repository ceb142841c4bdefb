// Package celcost bounds the size of the values that CEL expressions build. CEL counts a call after
// it ran, and a list by its first level, so that an expression can double a value with every few
// characters. Here every list and map is measured as a whole when it is made, or bounded by
// [Estimate] where others evaluate.
package celcost
