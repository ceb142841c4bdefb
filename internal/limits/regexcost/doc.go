// Package regexcost bounds the work of regular expressions of a package, which grows with the size
// of their program.
package regexcost
