package repository

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Content is the offer of one repository.
type Content struct {
	// Packages are sorted by name.
	Packages []Package
	// Problems name the documents and versions that are not offered, or only in part, with file,
	// document and field. There are at most limits.RepositoryProblems, and one that counts the
	// others.
	Problems []string
}

// Package is one package with the versions that a repository offers.
type Package struct {
	Name    string
	Display *corev1alpha1.PackageDisplay
	// Versions start with the lowest. Repository is not set in them.
	Versions []corev1alpha1.AvailableVersion
}

// Read reads the documents of a repository from files by path: *.yaml, *.yml and *.json, in any
// folder that does not start with a dot. An unusable document becomes a problem. The error is about
// the whole repository: it is too large, offers too much, or has no usable document.
func Read(files map[string][]byte) (*Content, error) { return ReadWith(files, Options{}) }

// Options configure ReadWith.
type Options struct {
	// Withheld are files that come from Secrets. Problems do not quote them.
	Withheld map[string]bool
	// Bytes limits all offers as JSON. limits.RepositoryOfferBytes is the default and the maximum.
	Bytes int64
	// Admit, if set, is called before the offers exceed limits.SmallPackageBytes. It can wait. Its
	// error stops the reading.
	Admit func() error
}

// ReadWith is Read with options.
func ReadWith(files map[string][]byte, o Options) (*Content, error) {
	// The input as a whole is bounded before any file is parsed.
	size := 0
	for _, data := range files {
		size += len(data)
	}
	switch {
	case len(files) > limits.RepositoryFiles:
		return nil, fmt.Errorf("the repository has %d files; the limit is %d: offer fewer versions, or split it into several repositories", len(files), limits.RepositoryFiles)
	case size > limits.RepositoryBytes:
		return nil, fmt.Errorf("the files of the repository have %d bytes; the limit is %d: offer fewer versions, or split it into several repositories", size, limits.RepositoryBytes)
	}

	if o.Bytes == 0 || o.Bytes > limits.RepositoryOfferBytes {
		o.Bytes = limits.RepositoryOfferBytes
	}

	r := &reader{opts: o, packages: map[string]*offered{}, ignored: map[string]int{}, schemas: map[digest]*runtime.RawExtension{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !loader.IsPlainManifest(name) {
			continue
		}
		r.file(name, files[name])
		if r.whole != nil {
			return nil, r.whole
		}
	}

	return r.content()
}

// reader collects the offers in the documents of a repository.
type reader struct {
	reporter
	opts     Options
	packages map[string]*offered
	// known counts documents of known kinds; versions and bytes count their offers.
	known, versions, bytes int
	schemas                map[digest]*runtime.RawExtension // by their text
	// found are the problems of the files before. dropped counts problems beyond the limit.
	found   violation.Violations
	dropped int
	// ignored counts versions by the fields that are ignored in them.
	ignored map[string]int
	// whole is the error that makes the whole repository unusable.
	whole error
}

// file reads the documents of one file, and keeps its problems in their order.
func (r *reader) file(name string, data []byte) {
	r.problems = nil
	if len(name) > limits.PathBytes {
		r.keep(violation.Violation{Reason: violation.ReasonLimit}.
			Because("Shorten it.", "the path %.100q… has %d bytes; the limit is %d", name, len(name), limits.PathBytes))
		return
	}

	problems := document.Each(printable(name), data, r.document)
	problems = append(problems, r.problems...)
	slices.SortStableFunc(problems, func(a, b violation.Violation) int { return cmp.Compare(a.Document, b.Document) })
	if r.opts.Withheld[name] {
		// Only the positions are kept, because fields and objects can quote the file as well.
		for i, v := range problems {
			problems[i] = violation.Violation{
				Reason: v.Reason, Path: v.Path, Document: v.Document, Line: v.Line,
				Details: "the file comes from a Secret, so messages do not quote it", Remedy: "kubectl package repository build shows the problems of a file.",
			}
		}
	}

	r.keep(problems...)
}

// keep adds problems up to the limit and counts the others.
func (r *reader) keep(problems ...violation.Violation) {
	room := min(len(problems), limits.RepositoryProblems-len(r.found))
	r.found = append(r.found, problems[:room]...)
	r.dropped += len(problems) - room
}

// printable quotes a path that would draw on a terminal.
func printable(name string) string {
	if quoted := fmt.Sprintf("%q", name); quoted[1:len(quoted)-1] != name {
		return quoted
	}
	return name
}

// document reads a document by its kind. A document of another kind is a problem and not an error,
// because folders can contain more than packages.
func (r *reader) document(d *document.Document) {
	if r.whole != nil {
		return
	}

	r.doc, r.object = d, ""
	m, _ := d.Value.(map[string]any)
	apiVersion, _ := m["apiVersion"].(string)
	kind, _ := m["kind"].(string)
	read, ok := kinds[apiVersion+" "+kind]
	if !ok {
		r.because(violation.ReasonUnknownGVK, "kind", "A repository has documents of the kinds Repository, RepositoryEntry, Package and PackageMetadata; remove others.",
			"got apiVersion %q and kind %q", apiVersion, kind)
		return
	}

	r.known++
	read(r)
}

// content returns everything read so far.
func (r *reader) content() (*Content, error) {
	out := &Content{}
	for _, name := range slices.Sorted(maps.Keys(r.packages)) {
		if p, ok := r.packages[name].content(name); ok {
			out.Packages = append(out.Packages, p)
		}
	}

	for _, v := range r.found {
		out.Problems = append(out.Problems, v.String())
	}

	switch {
	case r.known == 0 && len(out.Problems) > 0:
		return nil, fmt.Errorf("the repository has no document of a known kind; the first problem: %s", out.Problems[0])
	case r.known == 0:
		return nil, errors.New("the repository has no document in a file *.yaml, *.yml or *.json: check the source and its subPath")
	case len(out.Packages) == 0 && len(out.Problems) > 0:
		return nil, fmt.Errorf("nothing in the repository can be used; the first problem: %s", out.Problems[0])
	}

	if r.dropped > 0 {
		out.Problems = append(out.Problems, fmt.Sprintf("%d more problems are not shown; the limit is %d", r.dropped, limits.RepositoryProblems))
	}

	for _, what := range slices.Sorted(maps.Keys(r.ignored)) {
		out.Problems = append(out.Problems, fmt.Sprintf("%s: %d", what, r.ignored[what]))
	}

	return out, nil
}
