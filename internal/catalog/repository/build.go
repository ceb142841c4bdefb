package repository

import (
	"cmp"
	"errors"
	"slices"
)

// Build returns a repository with entries, in any order. The error names a version that two images
// of a package have.
func Build(name string, entries []Entry) (*Index, error) {
	x := &Index{Name: name}
	var problems []error
	// If an image has several entries, the one with the highest version describes all.
	byHighest := func(a, b Entry) int {
		return cmp.Or(compareHighest(a, b), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Image, b.Image), cmp.Compare(a.Digest, b.Digest))
	}
	for _, e := range slices.SortedFunc(slices.Values(entries), byHighest) {
		problems = append(problems, x.add(e))
	}
	x.sort()
	return x, errors.Join(problems...)
}
