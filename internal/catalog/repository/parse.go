package repository

import (
	"fmt"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Parse reads a repository file. Messages call it path. Its error is violation.Violations.
func Parse(path string, data []byte) (*Index, error) {
	if len(data) > limits.FileBytes {
		return nil, violation.Violations{{
			Reason: violation.ReasonLimit, Path: path, Details: fmt.Sprintf("the file has more than %d bytes", limits.FileBytes), Remedy: "Split the repository.",
		}}
	}

	p := parser{index: &Index{}, seen: map[string]bool{}}
	problems := document.Each(path, data, p.document)
	problems = append(problems, p.problems...)
	if p.documents == 0 && len(problems) == 0 {
		problems = append(problems, violation.Violation{
			Reason: violation.ReasonRepositoryInvalid, Path: path, Details: "the file is empty",
			Remedy: "Start one with kubectl package repository initialize.",
		})
	}

	if err := problems.Err(); err != nil {
		return nil, err
	}

	p.index.sort()
	return p.index, nil
}

// parser reads one repository file. Unlike a catalogue, a file with any problem is refused, because
// its author is the reader of the problem.
type parser struct {
	reporter
	index     *Index
	documents int
	seen      map[string]bool
}

// document reads the Repository first, and then entries.
func (p *parser) document(d *document.Document) {
	p.doc = d
	p.documents++
	want := manifestsv1alpha1.KindRepositoryEntry
	if d.Index == 1 {
		want = manifestsv1alpha1.KindRepository
	}

	m, _ := d.Value.(map[string]any)
	if m["apiVersion"] != manifestsv1alpha1.GroupVersion.String() || m["kind"] != want {
		p.fail("kind", fmt.Sprintf("Set apiVersion to %s and kind to %s.", manifestsv1alpha1.GroupVersion, want),
			"got apiVersion %q and kind %q", fmt.Sprint(m["apiVersion"]), fmt.Sprint(m["kind"]))
		return
	}

	if d.Index == 1 {
		p.index.Name, _ = p.repository()
		return
	}

	e, ok := p.entry()
	if key := e.Image + "@" + e.name(); !p.seen[key] {
		p.seen[key] = true
	} else {
		p.fail("metadata.name", "Remove one of the two entries.", "%q is listed twice", e.name())
		ok = false
	}

	if ok {
		p.index.Entries = append(p.index.Entries, e)
	}
}
