// Package activation has the rules and words of revisions that await their activation, are
// rejected, or gave way to an earlier one. It has no client and no clock.
package activation
