package manifest

import (
	"fmt"
	"strings"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Names of the files; the second extension is accepted as well.
const (
	manifestFile = "manifest"
	lockFile     = "manifest.lock"
)

// Result is what the manifest and the lock say.
type Result struct {
	// Manifest is never nil when there was a readable one.
	Manifest *manifestsv1alpha1.PackageManifest
	// Lock is nil where the package has none.
	Lock *manifestsv1alpha1.PackageManifestLock
	// Strict is set if the manifest states spec.version: what only Package Operator accepts
	// is an error.
	Strict bool
	// Warnings are what does not stop the package.
	Warnings violation.Violations

	manifest, lock *document.Document
	// writeOnly are the places of schemas that say writeOnly: true.
	writeOnly map[string]bool
}

// IsManifest reports whether a path is that of a manifest or a lock.
func IsManifest(path string) bool {
	for _, name := range []string{manifestFile, lockFile} {
		if path == name+".yaml" || path == name+".yml" {
			return true
		}
	}
	return false
}

// Read reads and checks manifest and lock. The Result is nil if the manifest cannot be
// decoded. component replaces the name, unless it is empty.
func Read(files archive.Files, component string) (*Result, violation.Violations) {
	r := &Result{}
	doc, problems := find(files, manifestFile, violation.ReasonManifestDuplicated)
	if doc == nil && len(problems) == 0 {
		return nil, violation.Violations{{
			Reason: violation.ReasonManifestNotFound, Details: "searched at manifest.yaml, manifest.yml",
			Remedy: "Put manifest.yaml into the folder /package of the image.",
		}}
	}
	if doc == nil {
		return nil, problems
	}
	r.manifest = doc
	r.Strict = statesVersion(doc)
	r.Warnings = append(r.Warnings, doc.Warnings...)
	m := &manifestsv1alpha1.PackageManifest{}
	d := decoder{doc: doc, reason: violation.ReasonManifestInvalid}
	if v := checkKind(doc, manifestsv1alpha1.KindPackageManifest); v != nil {
		return nil, append(problems, *v)
	}
	d.decode(m)
	r.writeOnly = d.writeOnly
	problems = append(problems, d.problems...)
	r.Warnings = append(r.Warnings, d.warnings...)
	r.unknown(&problems, d.unknown)
	problems = append(problems, r.Doubtful(doc.Doubts...)...)
	if len(d.problems) > 0 {
		return nil, append(problems, r.readLock(files)...)
	}
	r.Manifest = m
	if component != "" {
		m.Name = component
	}
	problems = append(problems, r.readLock(files)...)
	problems = append(problems, r.validate(files)...)
	return r, problems
}

// statesVersion reads spec.version even of a manifest that cannot be decoded.
func statesVersion(doc *document.Document) bool {
	raw, ok := doc.Raw("spec.version")
	return ok && raw != ""
}

// Doubtful returns what only Package Operator accepts if Strict, else it adds warnings.
func (r *Result) Doubtful(doubts ...violation.Violation) violation.Violations {
	if r.Strict {
		return doubts
	}
	r.Warnings = append(r.Warnings, doubts...)
	return nil
}

// unknown sorts unknown fields into problems or warnings.
func (r *Result) unknown(problems *violation.Violations, unknown violation.Violations) {
	if r.Strict {
		*problems = append(*problems, unknown...)
		return
	}
	for _, v := range unknown {
		v.Details += ", dropped"
		r.Warnings = append(r.Warnings, v)
	}
}

func (r *Result) readLock(files archive.Files) violation.Violations {
	doc, problems := find(files, lockFile, violation.ReasonLockDuplicated)
	if doc == nil {
		return problems
	}
	r.lock = doc
	r.Warnings = append(r.Warnings, doc.Warnings...)
	problems = append(problems, r.Doubtful(doc.Doubts...)...)
	if v := checkKind(doc, manifestsv1alpha1.KindPackageManifestLock); v != nil {
		return append(problems, *v)
	}
	d := decoder{doc: doc, reason: violation.ReasonLockInvalid}
	l := &manifestsv1alpha1.PackageManifestLock{}
	d.decode(l)
	problems = append(problems, d.problems...)
	r.Warnings = append(r.Warnings, d.warnings...)
	r.unknown(&problems, d.unknown)
	if len(d.problems) == 0 {
		r.Lock = l
	}
	return problems
}

// find returns the document of a file with one of two extensions; nil for none.
func find(files archive.Files, name string, twice violation.Reason) (*document.Document, violation.Violations) {
	path, other := name+".yaml", name+".yml"
	if _, ok := files[path]; !ok {
		path, other = other, path
	}
	data, ok := files[path]
	if !ok {
		return nil, nil
	}
	if _, both := files[other]; both {
		return nil, violation.Violations{{
			Reason: twice, Details: path + " and " + other + " exist", Remedy: "Delete one of them.",
		}}
	}
	if len(data) > limits.ManifestBytes {
		return nil, violation.Violations{{
			Reason: violation.ReasonLimit, Path: path,
			Details: fmt.Sprintf("the file has %d bytes; the limit is %d", len(data), limits.ManifestBytes),
		}}
	}
	var docs []*document.Document
	problems := document.EachWithDoubts(path, data, func(d *document.Document) { docs = append(docs, d) })
	if len(problems) == 0 && len(docs) == 0 {
		problems = violation.Violations{{Reason: violation.ReasonInvalidYAML, Path: path, Details: "the file has 0 documents, not 1"}}
	}
	if len(docs) == 0 || len(problems) > 0 && problems[0].Document < docs[0].Index {
		return nil, problems
	}
	// Package Operator reads the first document only.
	if n := len(docs) + len(problems); n > 1 {
		docs[0].Doubts = append(docs[0].Doubts, violation.Violation{
			Reason: violation.ReasonInvalidYAML, Path: path, Details: fmt.Sprintf("the file has %d documents, not 1; the first one is read", n), Remedy: "Remove the others.",
		})
	}
	return docs[0], nil
}

// checkKind compares apiVersion and kind with what the file has to hold.
func checkKind(doc *document.Document, kind string) *violation.Violation {
	want := manifestsv1alpha1.GroupVersion
	m, _ := doc.Value.(map[string]any)
	apiVersion, _ := m["apiVersion"].(string)
	gotKind, _ := m["kind"].(string)
	if apiVersion == want.String() && gotKind == kind {
		return nil
	}
	group, version, _ := strings.Cut(apiVersion, "/")
	v := &violation.Violation{
		Reason: violation.ReasonUnknownGVK, Path: doc.Path, Document: doc.Index, Line: doc.Line("apiVersion"),
		Details: fmt.Sprintf("got apiVersion %q and kind %q", apiVersion, gotKind),
		Remedy:  fmt.Sprintf("Set apiVersion to %s and kind to %s.", want, kind),
	}
	if group == want.Group && gotKind == kind {
		v.Details = fmt.Sprintf("unknown version %q, supported versions: %s", version, want.Version)
		v.Remedy = fmt.Sprintf("Set apiVersion to %s.", want)
	}
	return v
}

// At returns a violation that points at a field of the manifest.
func (r *Result) At(reason violation.Reason, field string) violation.Violation {
	return violation.Violation{
		Reason: reason, Path: r.manifest.Path, Document: r.manifest.Index, Line: r.manifest.Line(field), Field: field,
	}
}

func (r *Result) inLock(reason violation.Reason, field string) violation.Violation {
	return violation.Violation{
		Reason: reason, Path: r.lock.Path, Document: r.lock.Index, Line: r.lock.Line(field), Field: field,
	}
}
