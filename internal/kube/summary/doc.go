// Package summary reduces the conditions of a package to one word for its state. The command line,
// the page and the metrics of the manager all show this word.
package summary
