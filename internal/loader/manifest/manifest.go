package manifest

import (
	"fmt"
	"reflect"
	"strings"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// These are the names of the files. The second extension is accepted as well.
const (
	manifestFile = "manifest"
	lockFile     = "manifest.lock"
)

// Result is the content of the manifest and the lock.
type Result struct {
	// Manifest is not nil if there was a readable one.
	Manifest *manifestsv1alpha1.PackageManifest
	Lock     *manifestsv1alpha1.PackageManifestLock
	// Strict is set if the manifest states spec.version. Input that only Package Operator accepts
	// is an error then.
	Strict   bool
	Warnings violation.Violations

	manifest, lock *document.Document
	writeOnly      map[string]bool // see comparison
}

// IsManifest reports whether a path is the path of a manifest or a lock.
func IsManifest(path string) bool {
	for _, name := range []string{manifestFile, lockFile} {
		if path == name+".yaml" || path == name+".yml" {
			return true
		}
	}
	return false
}

// Read reads and checks manifest and lock. The Result is nil if the manifest cannot be decoded.
func Read(files archive.Files, component string) (*Result, violation.Violations) {
	doc, problems := find(files, manifestFile, violation.ReasonManifestDuplicated)
	if doc == nil && len(problems) == 0 {
		return nil, violation.Violations{violation.Violation{Reason: violation.ReasonManifestNotFound}.
			Because("Put manifest.yaml into the folder /package of the image.", "searched at manifest.yaml, manifest.yml")}
	}
	if doc == nil {
		return nil, problems
	}

	// spec.version is read even if the manifest cannot be decoded.
	version, stated := doc.Raw("spec.version")
	r := &Result{manifest: doc, Manifest: &manifestsv1alpha1.PackageManifest{}, Strict: stated && version != "", writeOnly: map[string]bool{}}
	if v := checkKind(doc, manifestsv1alpha1.KindPackageManifest); v != nil {
		return nil, append(problems, *v)
	}

	unknown, wrong := r.decode(doc, violation.ReasonManifestInvalid, r.Manifest)
	problems = append(problems, r.Doubtful(doc.Doubts...)...)
	if component != "" {
		r.Manifest.Name = component
	}

	problems = append(problems, r.readLock(files)...)
	if len(wrong) > 0 {
		return nil, append(append(problems, wrong...), unknown...)
	}
	if r.Strict && len(unknown) > 0 {
		return r, append(problems, unknown...) // a misspelt field would also be missing
	}

	found := r.validate(files)
	if len(found) > 0 {
		return r, append(append(problems, found...), unknown...) // one of them can be the cause
	}
	r.Warnings = append(r.Warnings, unknown...)
	return r, problems
}

// decode fills into, a pointer to a struct, and adds warnings. It returns the fields of the document
// that the struct does not have, and the problems with which it cannot be decoded.
func (r *Result) decode(doc *document.Document, reason violation.Reason, into any) (unknown, wrong violation.Violations) {
	c := &comparison{doc: doc, reason: reason, writeOnly: r.writeOnly}
	doc.Value = c.walk(doc.Value, reflect.TypeOf(into), "")
	r.Warnings = append(append(r.Warnings, doc.Warnings...), c.unquoted...)
	for i := range c.unknown {
		if !r.Strict {
			c.unknown[i].Details += ", dropped"
		}
	}
	if v := decode(doc, reason, into); v != nil {
		return c.unknown, append(c.empty, *v)
	}
	return c.unknown, c.empty
}

// Doubtful returns problems that only Package Operator accepts if Strict is set; otherwise it adds
// them as warnings.
func (r *Result) Doubtful(doubts ...violation.Violation) violation.Violations {
	if r.Strict {
		return doubts
	}
	r.Warnings = append(r.Warnings, doubts...)
	return nil
}

// readLock reads the lock, if there is one. Lock stays nil if it cannot be decoded.
func (r *Result) readLock(files archive.Files) violation.Violations {
	doc, problems := find(files, lockFile, violation.ReasonLockDuplicated)
	if doc == nil {
		return problems
	}

	r.lock = doc
	if v := checkKind(doc, manifestsv1alpha1.KindPackageManifestLock); v != nil {
		r.Warnings = append(r.Warnings, doc.Warnings...)
		return append(append(problems, r.Doubtful(doc.Doubts...)...), *v)
	}

	l := &manifestsv1alpha1.PackageManifestLock{}
	unknown, wrong := r.decode(doc, violation.ReasonLockInvalid, l)
	problems = append(problems, r.Doubtful(append(unknown, doc.Doubts...)...)...)
	if len(wrong) > 0 {
		return append(problems, wrong...)
	}

	r.Lock = l
	return problems
}

// find returns the document of a file with one of two extensions, or nil.
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
		return nil, violation.Violations{violation.Violation{Reason: twice}.Because("Delete one of them.", "%s and %s exist", path, other)}
	}
	if len(data) > limits.ManifestBytes {
		return nil, violation.Violations{violation.Violation{Reason: violation.ReasonLimit, Path: path}.
			Because("", "the file has %d bytes; the limit is %d", len(data), limits.ManifestBytes)}
	}

	var docs []*document.Document
	problems := document.EachWithDoubts(path, data, func(d *document.Document) { docs = append(docs, d) })
	if len(problems) == 0 && len(docs) == 0 {
		problems = violation.Violations{{Reason: violation.ReasonInvalidYAML, Path: path, Details: "the file has 0 documents, not 1"}}
	}
	if len(docs) == 0 || len(problems) > 0 && problems[0].Document < docs[0].Index {
		return nil, problems
	}
	// Package Operator reads only the first document.
	if n := len(docs) + len(problems); n > 1 {
		docs[0].Doubts = append(docs[0].Doubts, violation.Violation{Reason: violation.ReasonInvalidYAML, Path: path}.
			Because("Remove the others.", "the file has %d documents, not 1; the first one is read", n))
	}

	return docs[0], nil
}

// checkKind refuses another kind or version, before its fields are reported as unknown.
func checkKind(doc *document.Document, kind string) *violation.Violation {
	want := manifestsv1alpha1.GroupVersion
	m, _ := doc.Value.(map[string]any)
	apiVersion, _ := m["apiVersion"].(string)
	gotKind, _ := m["kind"].(string)
	if apiVersion == want.String() && gotKind == kind {
		return nil
	}

	group, version, _ := strings.Cut(apiVersion, "/")
	v := violation.Violation{Reason: violation.ReasonUnknownGVK, Path: doc.Path, Document: doc.Index, Line: doc.Line("apiVersion")}
	if group == want.Group && gotKind == kind {
		v = v.Because(fmt.Sprintf("Set apiVersion to %s.", want), "unknown version %q, supported versions: %s", version, want.Version)
	} else {
		v = v.Because(fmt.Sprintf("Set apiVersion to %s and kind to %s.", want, kind), "got apiVersion %q and kind %q", apiVersion, gotKind)
	}

	return &v
}

// At returns a violation at a field of the manifest.
func (r *Result) At(reason violation.Reason, field string) violation.Violation {
	return r.manifest.At(reason, field)
}
