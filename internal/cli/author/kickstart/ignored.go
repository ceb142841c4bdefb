package kickstart

import (
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/gates"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/limits"
)

// injectAnnotations is the prefix of annotations that make cert-manager fill in the certificate
// authority of an object.
const injectAnnotations = "cert-manager.io/inject-"

// ignoredFields leaves fields of the input to the workloads that fill them in: certificate
// authorities of webhooks, APIServices and definitions, and failurePolicy: Ignore of webhooks,
// which their server changes to Fail once it answers. Rights, or an annotation of cert-manager,
// show which workloads write an object.
func (m *maker) ignoredFields(all []*object) {
	writers := map[*object]*object{}
	for _, o := range all {
		if pods, _ := fields.PodSpec(o.value); pods == nil {
			continue
		}
		// The first writer suffices for the note.
		for _, target := range gates.Written(all, o) {
			if writers[target] == nil {
				writers[target] = o
			}
		}
	}

	for _, o := range all {
		by := "cert-manager"
		injects := func(key string) bool { return strings.HasPrefix(key, injectAnnotations) }
		if w := writers[o]; w != nil {
			by = w.String()
		} else if !slices.ContainsFunc(fields.Keys(fields.Map(o.value, "metadata", "annotations")), injects) {
			continue
		}

		pointers := o.filledIn(writers[o] != nil)
		if _, set := o.annotation(corev1alpha1.IgnoredFieldsAnnotation); set || len(pointers) == 0 {
			continue
		}
		if len(pointers) > limits.IgnoredFields {
			m.note("%s can fill in %d fields of %s, more than the %d that an object can leave to others: the engine resets them to the package's values", by, len(pointers), o, limits.IgnoredFields)
			continue
		}

		o.annotate(corev1alpha1.IgnoredFieldsAnnotation, strings.Join(pointers, "\n"))
		m.note("%s can fill in fields of %s: its values are kept (%s)", by, o, strings.Join(pointers, ", "))
	}
}

// filledIn returns the JSON pointers of the object's fields that others fill in. A field that the
// object does not have belongs to them anyway. written means that a workload of the package can
// write the object.
func (o *object) filledIn(written bool) []string {
	var pointers []string
	has := func(path ...string) {
		if fields.Get(o.value, path...) != nil {
			pointers = append(pointers, "/"+strings.Join(path, "/"))
		}
	}

	has("spec", "caBundle")
	has("spec", "conversion", "webhook", "clientConfig", "caBundle")
	for i, w := range fields.Maps(o.value, "webhooks") {
		// A server that changes the failurePolicy of its webhook also writes its certificate
		// authority.
		opens := written && fields.Text(w, "failurePolicy") == "Ignore"
		if opens || fields.Get(w, "clientConfig", "caBundle") != nil {
			pointers = append(pointers, fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i))
		}
		if opens {
			pointers = append(pointers, fmt.Sprintf("/webhooks/%d/failurePolicy", i))
		}
	}

	return pointers
}
