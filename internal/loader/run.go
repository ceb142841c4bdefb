package loader

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/patch"
	"lockstep.run/lockstep/internal/loader/render"
	"lockstep.run/lockstep/internal/loader/sensitive"
	"lockstep.run/lockstep/internal/loader/violation"
)

// load is one run of Load.
type load struct {
	ctx  context.Context
	opts *Options
	unit *unit

	// problems refuse the package; warnings do not.
	problems, warnings violation.Violations
	secrets            *sensitive.Values
	locked             lockedImages
	// rewritten are the repositories that result from ImageOverride.
	rewritten map[string]bool
	// configFailed is set if the configuration violates the schema. Problems of templates are
	// consequences then.
	configFailed bool
}

func (l *load) add(v ...violation.Violation) { l.problems = append(l.problems, v...) }

// reader reads the object files of a package in parallel.
type reader struct {
	strict    bool
	opts      *Options
	phases    []string
	classes   map[string]string // by phase
	labels    map[string]string
	rendered  map[string]bool
	condition func(string) (bool, error)
	patches   *patch.Set
	ignored   []*ignoredEntry
	secrets   *sensitive.Values
	locked    lockedImages
	// rewritten are the repositories that images of the lock were rewritten to.
	rewritten map[string]bool

	// mu serialises condition; the counters are shared by all files.
	mu           sync.Mutex
	bytes, count atomic.Int64
	wrong        atomic.Int64
}

// full reports whether the objects so far exceed a limit. Files in other goroutines count as well,
// so a package that exceeds it can have any of its objects.
func (r *reader) full() bool {
	return r.bytes.Load() > r.opts.bytes() || r.count.Load() > limits.PackageObjects
}

// keep evaluates a condition annotation. It takes a lock because evaluators are not safe for
// concurrent use.
func (r *reader) keep(expression string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.condition(expression)
}

// sourceOf makes a violation in the output of a template point at the template.
func (r *reader) sourceOf(v violation.Violation) violation.Violation {
	if r.rendered[v.Path] {
		v.Path += render.Suffix
		if v.Line > 0 {
			v.Details += fmt.Sprintf(" (line %d of the template's output)", v.Line)
			v.Line = 0
		}
	}
	return v
}

// isRewritten reports whether the image is in the lock, or in a repository that an image of the
// lock was rewritten to, because templates take references apart.
func (r *reader) isRewritten(ref string) bool {
	_, locked := r.locked[ref]
	return locked || r.rewritten[RepositoryOf(ref)]
}

// ignoredEntry has fields that others own, for objects of a kind. The manifest or the Package
// states them.
type ignoredEntry struct {
	*corev1alpha1.IgnoredFields
	// source names the entry of a Package. Such an entry has to match an object; one of a manifest
	// does not, because templates can render other objects.
	source string
	used   atomic.Bool
}

// matches compares kind, name and namespace; an empty name or namespace matches all.
func (f *ignoredEntry) matches(o *object) bool {
	return f.Group == o.gvk.Group && f.Kind == o.gvk.Kind && (f.Name == "" || f.Name == o.name) && (f.Namespace == "" || f.Namespace == o.namespace)
}

// found is the content of one object file, or of all of them.
type found struct {
	objects            []*object
	problems, warnings violation.Violations
	// left are the documents that conditions leave out, by path.
	left map[string][]document.Span
	// defect is the panic that ended the reading, if any.
	defect *panics.Error
}

// check makes an object from one document of a file.
type check struct {
	r       *reader
	doc     *document.Document
	body    map[string]any
	meta    map[string]any
	out     object
	left    bool
	patched []string

	problems, warnings violation.Violations
}

// at returns a violation at a field of the document, with the object's name.
func (c *check) at(reason violation.Reason, field string) violation.Violation {
	v := c.doc.At(reason, field)
	v.Object = c.describe()
	return v
}

// fail adds a problem at a field. It names the patches if any changed the object.
func (c *check) fail(reason violation.Reason, field, remedy, format string, args ...any) {
	if len(c.problems) > limits.Violations {
		return // finding the line of a field takes a while, and further problems are not shown
	}
	v := c.at(reason, field).Because(remedy, format, args...)
	if len(c.patched) > 0 {
		v.Details += " (after " + strings.Join(c.patched, ", ") + ")"
	}
	c.problems = append(c.problems, c.r.sourceOf(v))
}

// invalid is fail with the reason for an object that no API server would accept.
func (c *check) invalid(field, remedy, format string, args ...any) {
	c.fail(violation.ReasonObjectInvalid, field, remedy, format, args...)
}

// warn adds a warning at a field.
func (c *check) warn(reason violation.Reason, field, remedy, format string, args ...any) {
	c.warnings = append(c.warnings, c.r.sourceOf(c.at(reason, field).Because(remedy, format, args...)))
}

// doubtful reports an error if the manifest states a version; otherwise a warning.
func (c *check) doubtful(reason violation.Reason, field, remedy, format string, args ...any) {
	if c.r.strict {
		c.fail(reason, field, remedy, format, args...)
		return
	}
	c.warn(reason, field, remedy, format, args...)
}

// dropped is doubtful for a value that is removed if the package is accepted.
func (c *check) dropped(reason violation.Reason, field, remedy, format string, args ...any) {
	if !c.r.strict {
		format += ", dropped"
	}
	c.doubtful(reason, field, remedy, format, args...)
}

// describe names the object as far as possible: "apps/v1 Deployment web".
func (c *check) describe() string {
	apiVersion, _ := c.body["apiVersion"].(string)
	kind, _ := c.body["kind"].(string)
	name, _ := c.meta["name"].(string)
	if namespace, _ := c.meta["namespace"].(string); namespace != "" {
		name = namespace + "/" + name
	}
	return strings.Join(strings.Fields(apiVersion+" "+kind+" "+name), " ")
}

// annotationField returns the path of an annotation for messages.
func annotationField(key string) string { return document.Child("metadata.annotations", key) }
