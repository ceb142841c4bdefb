package kickstart

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/gates"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/presets"
)

// patchJobs moves Jobs behind the objects that they have the right to patch.
func (m *maker) patchJobs(all []*object) {
	byAccount := map[string][]*object{}
	for _, o := range all {
		if o.is("batch", "Job") && (o.hook == nil || !o.hook.before()) {
			key := o.namespace() + "/" + gates.Account(o)
			byAccount[key] = append(byAccount[key], o)
		}
	}

	for _, key := range slices.Sorted(maps.Keys(byAccount)) {
		if targets := gates.Written(all, byAccount[key][0]); len(targets) > 0 {
			for _, job := range patchers(byAccount[key]) {
				m.putBehind(job, targets)
			}
		}
	}
}

// putBehind moves a Job behind its targets. A probed APIService waits for the patch, so the Job
// shares its phase.
func (m *maker) putBehind(job *object, targets []*object) {
	last := slices.MaxFunc(targets, func(a, b *object) int { return presets.PhaseIndex(a.phase) - presets.PhaseIndex(b.phase) })
	phase := last.phase
	if phase == phaseAdmission {
		phase = phaseAdmissionPatch
	}
	earlier := presets.PhaseIndex(job.phase) >= 0 && presets.PhaseIndex(job.phase) < presets.PhaseIndex(phase)
	if earlier || job.hook != nil && phase == phaseAdmissionPatch {
		job.phase = phase
		m.note("%s has the right to patch %s: it is in the later phase %s", job, last, phase)
	}
}

// patchers returns the Jobs of one ServiceAccount that patch. Words of their names or command lines
// distinguish them, such as "patch" from "create". If no words do, it returns all of them.
func patchers(jobs []*object) []*object {
	out := gates.Filter(jobs, func(job *object) bool {
		text := strings.ToLower(strings.Join(append(gates.CommandTexts(job), job.name()), " "))
		words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(patchWords, w) })
	})
	if len(out) == 0 {
		return jobs
	}
	return out
}

// patchWords are the words that tell a Job that patches from one that creates.
var patchWords = []string{"patch", "patches", "inject", "update", "webhook", "webhooks", "crd", "crds"}

// dependents moves workloads behind the package's own resources if they call a Service whose pods a
// controller creates from those resources. Before that, they might never become ready.
func (m *maker) dependents(all []*object) {
	resources := gates.Filter(all, func(o *object) bool { return o.phase == phaseResources })
	if len(resources) == 0 {
		return
	}
	generated := gates.Filter(all, func(o *object) bool { // Services without pods in the package
		return o.is("", "Service") && len(fields.Map(o.value, "spec", "selector")) > 0 && len(gates.Selected(all, o)) == 0
	})
	var webhooks []*object
	for _, o := range all {
		webhooks = append(webhooks, gates.WebhookServers(all, o)...)
	}

	for _, o := range all {
		if o.gvk.Group != "apps" || o.phase != phaseDeploy || slices.Contains(webhooks, o) || gates.Controls(all, o, resources...) {
			continue
		}
		if i := slices.IndexFunc(generated, func(s *object) bool { return gates.Calls(o, s) }); i >= 0 {
			o.phase = phaseDependents
			m.note("%s calls %s, which gets its pods from resources of the package: it is in the later phase %s", o, generated[i], phaseDependents)
		}
	}
}

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
