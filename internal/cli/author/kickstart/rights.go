package kickstart

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"lockstep.run/lockstep/internal/cli/author/gates"
	"lockstep.run/lockstep/internal/cli/fields"
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
