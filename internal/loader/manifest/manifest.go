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
	// misspelt maps absent fields to the unknown fields that were probably meant.
	misspelt map[string]violation.Violation
	// writeOnly are the fields of schemas with writeOnly: true.
	writeOnly map[string]bool
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
	r := &Result{manifest: doc, Manifest: &manifestsv1alpha1.PackageManifest{}, Strict: stated && version != ""}
	if v := checkKind(doc, manifestsv1alpha1.KindPackageManifest); v != nil {
		return nil, append(problems, *v)
	}

	decoded := r.decode(doc, violation.ReasonManifestInvalid, r.Manifest, &problems)
	if component != "" {
		r.Manifest.Name = component
	}

	problems = append(problems, r.readLock(files)...)
	if !decoded {
		return nil, problems
	}

	said := map[string]bool{}
	for _, v := range r.validate(files) {
		unknown, misspelt := r.misspeltFor(v.Field)
		if v.Path != doc.Path || !misspelt {
			problems = append(problems, v)
		} else if !r.Strict && !said[unknown.Field] { // otherwise the unknown field is a problem itself
			said[unknown.Field] = true
			v.Line, v.Remedy = unknown.Line, fmt.Sprintf("%s is unknown. %s", unknown.Field, unknown.Remedy)
			problems = append(problems, v)
		}
	}

	return r, problems
}

// misspeltFor returns the unknown field that was probably meant for an absent field, or for one
// that contains it.
func (r *Result) misspeltFor(field string) (unknown violation.Violation, found bool) {
	for field != "" && !found {
		unknown, found = r.misspelt[field]
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return unknown, found
}

// decode decodes a document and collects its findings. It reports whether the result can be used.
func (r *Result) decode(doc *document.Document, reason violation.Reason, into any, problems *violation.Violations) bool {
	d := decoder{doc: doc, reason: reason}
	d.decode(into)
	if doc == r.manifest {
		r.writeOnly, r.misspelt = d.writeOnly, d.misspelt
	}

	r.Warnings = append(append(r.Warnings, doc.Warnings...), d.warnings...)
	for _, v := range d.unknown {
		if !r.Strict {
			v.Details += ", dropped"
		}
		*problems = append(*problems, r.Doubtful(v)...)
	}

	*problems = append(append(*problems, d.problems...), r.Doubtful(doc.Doubts...)...)
	return len(d.problems) == 0
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
	if r.decode(doc, violation.ReasonLockInvalid, l, &problems) {
		r.Lock = l
	}

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
