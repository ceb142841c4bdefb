package repository

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
)

// Index is the content of a repository.
type Index struct {
	// Name is the name of the repository. Dependencies name packages as <package>.<Name>.
	Name    string
	Entries []Entry
}

// Entry is one package image. Its Digest has the prefix sha256:.
type Entry struct {
	manifestsv1alpha1.RepositoryEntryData
	// Versions are the versions that the image is offered as, starting with the lowest, without a
	// leading v.
	Versions []*semver.Version
}

// name is the metadata.name of the entry, as Package Operator builds it.
func (e *Entry) name() string { return e.Name + "." + e.hex() }

func (e *Entry) hex() string { return strings.TrimPrefix(e.Digest, digestPrefix) }

// digestPrefix is the algorithm that files omit.
const digestPrefix = "sha256:"

// Add offers an image, or further versions of one. It refuses a version that another image of the
// package has.
func (x *Index) Add(e Entry) error {
	err := x.add(e)
	x.sort()
	return err
}

// add is Add without sorting.
func (x *Index) add(e Entry) error {
	e.Versions = slices.Clone(e.Versions)
	into := -1
	for i := range x.Entries {
		have := &x.Entries[i]
		if have.Name != e.Name {
			continue
		}
		if have.Image == e.Image && have.Digest == e.Digest {
			into = i
			continue
		}
		for _, v := range e.Versions {
			at := slices.IndexFunc(have.Versions, v.Equal)
			if at < 0 {
				continue
			}
			as := ""
			if have.Versions[at].String() != v.String() {
				as = fmt.Sprintf(" as %s, and build metadata does not tell versions apart", have.Versions[at])
			}
			return fmt.Errorf("version %s of %s is offered by %s@%s already%s: remove that first, or choose another version", v, have.Name, have.Image, have.Digest, as)
		}
	}

	if into < 0 {
		x.Entries = append(x.Entries, e)
	} else {
		x.Entries[into] = x.Entries[into].with(e)
	}

	return nil
}

// with adds another entry of the same image. It keeps this entry's description if the other one has
// none.
func (e Entry) with(o Entry) Entry {
	o.Versions = append(e.Versions, o.Versions...)
	describes := o.PackageName+o.Retracted+o.Revision != "" || o.Display != nil || o.Release != nil || o.ConfigSchema != nil ||
		len(o.Provides)+len(o.Dependencies)+len(o.Scopes) > 0
	if describes {
		return o
	}
	e.Versions, e.Constraints = o.Versions, o.Constraints
	return e
}

// Remove withdraws an image, and returns whether it was offered.
func (x *Index) Remove(image, digest string) bool {
	n := len(x.Entries)
	x.Entries = slices.DeleteFunc(x.Entries, func(e Entry) bool { return e.Image == image && e.Digest == digest })
	return len(x.Entries) < n
}

// sort sorts versions and entries, so that equal content gives equal files.
func (x *Index) sort() {
	for i := range x.Entries {
		versions := x.Entries[i].Versions
		slices.SortFunc(versions, (*semver.Version).Compare)
		x.Entries[i].Versions = slices.CompactFunc(versions, (*semver.Version).Equal)
	}
	slices.SortFunc(x.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), compareHighest(a, b), cmp.Compare(a.Digest, b.Digest), cmp.Compare(a.Image, b.Image))
	})
}

// highest returns the highest version of a sorted entry.
func highest(e Entry) *semver.Version {
	if len(e.Versions) == 0 {
		return semver.New(0, 0, 0, "", "")
	}
	return e.Versions[len(e.Versions)-1]
}

func compareHighest(a, b Entry) int { return highest(a).Compare(highest(b)) }

// document returns the entry in the form of a file.
func (e *Entry) document() manifestsv1alpha1.RepositoryEntry {
	data := e.RepositoryEntryData
	data.Digest, data.Versions = e.hex(), make([]string, len(e.Versions))
	for i, v := range e.Versions {
		data.Versions[i] = "v" + v.String()
	}

	return manifestsv1alpha1.RepositoryEntry{
		TypeMeta:   metav1.TypeMeta{APIVersion: manifestsv1alpha1.GroupVersion.String(), Kind: manifestsv1alpha1.KindRepositoryEntry},
		ObjectMeta: metav1.ObjectMeta{Name: e.name()},
		Data:       data,
	}
}
