package repository

import (
	"cmp"
	"errors"
	"slices"

	"github.com/Masterminds/semver/v3"
)

// Build returns a repository with entries, in any order. The error names every version that two
// images of a package have.
func Build(name string, entries []Entry) (*Index, error) {
	x := &Index{Name: name, Entries: slices.Clone(entries)}
	for i := range x.Entries {
		x.Entries[i].Versions = slices.Clone(x.Entries[i].Versions)
	}

	slices.SortFunc(x.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Image, b.Image), cmp.Compare(a.Digest, b.Digest), compareHighest(a, b))
	})
	// If an image has several entries, the one with the highest version describes all.
	merged := x.Entries[:0]
	for _, e := range x.Entries {
		if last := len(merged) - 1; last >= 0 && merged[last].name() == e.name() && merged[last].Image == e.Image {
			merged[last] = merged[last].with(e)
		} else {
			merged = append(merged, e)
		}
	}

	x.Entries = merged
	x.sort()
	var problems []error
	images := map[[2]string]*Entry{}
	for i := range x.Entries {
		e := &x.Entries[i]
		for _, v := range e.Versions {
			key := [2]string{e.Name, plain(v)}
			if have := images[key]; have != nil {
				problems = append(problems, ambiguous(v, have))
				continue
			}
			images[key] = e
		}
	}

	return x, errors.Join(problems...)
}

// plain returns a version without build metadata, which does not distinguish versions here.
func plain(v *semver.Version) string {
	return semver.New(v.Major(), v.Minor(), v.Patch(), v.Prerelease(), "").String()
}
