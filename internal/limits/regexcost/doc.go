// Package regexcost bounds the work of regular expressions that a package brings:
// they run in linear time, and the factor is the size of their program.
//
// Limits: limits.TemplatePatternBytes, limits.TemplateMatchWork.
package regexcost
