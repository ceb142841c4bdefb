package loader

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// ignoredEntries returns the entries of the manifest and of the Package. Invalid entries of the
// Package are problems.
func (l *load) ignoredEntries() []*ignoredEntry {
	var all []*ignoredEntry
	if l.unit.result != nil {
		for i := range l.unit.result.Manifest.Spec.IgnoredFields {
			all = append(all, &ignoredEntry{IgnoredFields: &l.unit.result.Manifest.Spec.IgnoredFields[i]})
		}
	}
	for i := range l.opts.IgnoredFields {
		all = append(all, &ignoredEntry{IgnoredFields: &l.opts.IgnoredFields[i], source: fmt.Sprintf("spec.ignoredFields[%d]", i)})
	}
	return all
}

// ignoredFields puts all fields of the object that others own into its annotation, where the
// rollout reads them. It returns the annotations.
func (c *check) ignoredFields(annotations map[string]any) map[string]any {
	const key = corev1alpha1.IgnoredFieldsAnnotation
	text, _ := annotations[key].(string)
	// The object can also state fields itself. Its pointers are joined with the entries'.
	own, err := apinames.Default.ParseIgnoredFields(text)
	if err != nil {
		c.fail(violation.ReasonAnnotationInvalid, annotationField(key), "", "%v", err)
		return annotations
	}

	var pointers []string
	for _, path := range own {
		pointers = append(pointers, objects.FieldPointer(path))
	}

	for _, f := range c.r.ignored {
		if f.matches(&c.out) {
			f.used.Store(true)
			pointers = append(pointers, f.JSONPointers...)
		}
	}

	if len(pointers) == 0 {
		return annotations
	}

	// Sorted pointers keep the object equal if only the order of entries changes.
	slices.Sort(pointers)
	text = strings.Join(slices.Compact(pointers), "\n")
	all, err := apinames.Default.ParseIgnoredFields(text)
	if err = cmp.Or(err, all.Check(c.body)); err != nil {
		c.fail(violation.ReasonAnnotationInvalid, annotationField(key), "", "%v", err)
	}
	if annotations == nil {
		annotations = map[string]any{}
		c.meta["annotations"] = annotations
	}

	annotations[key] = text
	return annotations
}
