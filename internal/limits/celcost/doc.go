// Package celcost bounds what CEL expressions build.
//
// CEL counts the cost of a call once it has run, and that of lists by their first
// level: joining two costs nothing, and a list that holds another one twice is two
// elements. So an expression can double a value with every few characters, and a
// comparison of such values runs for hours before it is counted. Here every list
// and map that an expression writes is weighed with all that is in it, when it is
// made: a value that grows has to go through one of them to be given a name. Where
// others evaluate, as for the rules of a schema, [Estimate] bounds it beforehand.
//
// Limits: limits.ExpressionValues for one value, limits.ExpressionWork for all
// that one Budget is for.
package celcost
