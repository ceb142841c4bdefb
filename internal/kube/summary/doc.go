// Package summary says the state of a package in one word, out of what its conditions say of its present spec. The command
// line, the page and the metrics of the manager show the same word, which is computed here alone.
package summary
