package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/phases/drift"
)

func (s *step) intent() intent {
	return intent{tracking.TemplateID(s.Desired, s.Labels, s.Metadata.Owner), s.Metadata.Revision}
}

// change makes the object match its template. It applies the template; if the API server refuses
// that, or if a field stays behind, it patches the object with the result of drift.Implied. An
// apply cannot remove fields without a manager, such as the defaults of another alternative of a
// union, or fields that others wrote in place of ours.
func (s *step) change(ctx context.Context, dryRun bool) (*unstructured.Unstructured, error) {
	var prepared *replacement
	if !dryRun {
		prepared = s.replacement
	}
	if prepared != nil && prepared.patch != nil && prepared.resourceVersion == s.Live.ResourceVersion {
		return s.replace(ctx, prepared)
	}

	template, err := s.content(ctx)
	if err != nil {
		return nil, err
	}

	answer, refusal := s.send(ctx, template, apply.ApplyRequest{Force: true, DryRun: dryRun})
	if refusal != nil && !refused(refusal) {
		return nil, refusal
	}

	a := attempt{template: template, answer: answer, refusal: refusal, prepared: prepared, dryRun: dryRun}
	a.reshaped = prepared == nil && s.reshaped(template) || prepared.surprised(answer)
	if refusal == nil && !a.reshaped && !drift.Short(template, answer.Object, drift.LearnListTypes(answer.GetManagedFields())) {
		if prepared != nil {
			s.noteResidue(prepared.residue)
		}
		return answer, nil
	}

	// The apply is stored although fields stay behind, so the next request has to name its resource
	// version.
	if refusal == nil && !dryRun {
		s.live, s.Live = answer, s.run.Tracker.Observe(s.Key, answer)
	}
	return s.complete(ctx, a)
}

// attempt is an apply that did not make the object match its template, or might not have.
type attempt struct {
	template map[string]any
	answer   *unstructured.Unstructured
	refusal  error
	prepared *replacement
	// reshaped means that fields might have left the template.
	reshaped, dryRun bool
}

// complete makes the object match its template after an attempt.
func (s *step) complete(ctx context.Context, a attempt) (*unstructured.Unstructured, error) {
	r, implied, err := s.imply(ctx, a.answer)
	switch {
	case err != nil && a.refusal != nil:
		return nil, s.immutable(ctx, a.template, reported(a.refusal, err))
	case err != nil && !refused(err):
		return nil, err
	case err != nil:
	case a.refusal == nil && sameContent(a.answer, implied):
		r = &replacement{intent: s.intent(), kept: r.kept}
	case a.dryRun:
		a.answer = implied
		if s.Foreign {
			r.foreseen = implied
		}
	default:
		if a.answer, err = s.replace(ctx, r); err != nil {
			return nil, err
		}
	}

	if a.reshaped {
		if err := s.leave(ctx, r, a); err != nil {
			return nil, err
		}
	}

	if !a.dryRun {
		s.noteResidue(r.residue)
		return a.answer, nil
	}

	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	s.run.rollout.replacements[s.Key] = r // for the write that follows
	return a.answer, nil
}

// leave finds out which fields left the template and stay nevertheless.
func (s *step) leave(ctx context.Context, r *replacement, a attempt) error {
	if a.prepared != nil {
		r.residue = a.prepared.residue
	} else {
		r.residue = s.residue(ctx, a.answer)
	}

	kept := s.Foreign || s.Desired.Keep || s.Live.Keep // such an object is never recreated
	if len(r.residue) > 0 && (s.Desired.Recreate || s.Live.Recreate) && !kept && a.dryRun {
		return &ImmutableError{fmt.Errorf("the API server keeps %s, which left the template", strings.Join(r.residue, ", "))}
	}
	return nil
}

// refused reports whether the API server refused the content of an object, rather than the
// request.
func refused(err error) bool {
	_, denied := apply.AsUnauthorized(err)
	return !denied && apply.Classify(err) == apply.Blocked
}

// reshaped reports whether the template has other fields than a former one, or than the installer
// of an adopted object.
func (s *step) reshaped(template map[string]any) bool {
	if s.Foreign {
		return s.Live.InstallerFields
	}
	return slices.ContainsFunc(s.formerTemplates(), func(former map[string]any) bool {
		return drift.Reshaped(withoutMetadata(former), withoutMetadata(template))
	})
}

// formerTemplates returns the templates of other revisions that might have written the object.
func (s *step) formerTemplates() []map[string]any {
	var templates []map[string]any
	for _, rev := range s.run.rollout.Revisions() {
		if rev.History {
			continue // its content is not known
		}
		d, _ := rev.Find(s.Key)
		if d == nil || d.Content == s.Desired.Content {
			continue
		}
		if template, err := d.Object(rev.Metadata); err == nil {
			templates = append(templates, template)
		}
	}

	return templates
}

// listTypes returns the list types of a live object, and of the answer to its apply if there is
// one.
func listTypes(live, answer *unstructured.Unstructured) *drift.ListTypes {
	fields := live.GetManagedFields()
	if answer != nil {
		fields = slices.Concat(fields, answer.GetManagedFields())
	}
	return drift.LearnListTypes(fields)
}

// imply dry-runs the object that the template implies. As long as that is refused, it leaves out
// fields of others that stand in its way, and the installer of an adopted object keeps fields that
// cannot change, as after a takeover by kubectl apply. answer is the result of an apply, or nil
// before any. The replacement is never nil.
func (s *step) imply(ctx context.Context, answer *unstructured.Unstructured) (*replacement, *unstructured.Unstructured, error) {
	r := &replacement{intent: s.intent()}
	live, err := s.judged(ctx)
	if err != nil {
		return r, nil, err
	}

	template, err := s.content(ctx)
	if err != nil {
		return r, nil, err
	}
	m, err := drift.Imply(s.run.Tracker.Names, template, live, s.Foreign, listTypes(live, answer))
	if err != nil {
		return r, nil, err
	}

	m.After(s.formerTemplates())

	compared := false // with a new object
	for try := 1; ; try++ {
		patch, err := drift.Replace(live, m.Object())
		if err != nil {
			return r, nil, err
		}
		dry, err := s.patch(ctx, patch, true)
		switch {
		case err == nil && m.Open(dry.Object):
			try = 0 // fields that yielded are put back
			continue
		case refused(err) && try < limits.ImpliedTries && m.Yield(apply.CausesOf(err)):
			continue
		case refused(err) && m.Keep(apply.CausesOf(err)):
			r.kept = append(r.kept, apply.CausesOf(err)...)
			continue
		case err != nil:
			return r, nil, err
		}

		// Fields without a manager are not only defaults, which come back by themselves.
		same := sameContent(dry, live) || answer != nil && sameContent(dry, answer)
		if !same && !compared {
			compared = true
			changed, err := s.keepUnmanaged(ctx, m, answer)
			if err != nil {
				return r, nil, err
			}
			if changed {
				continue
			}
		}
		r.resourceVersion, r.patch, r.yielded = live.GetResourceVersion(), patch, m.Yielded()
		return r, dry, nil
	}
}

// keepUnmanaged keeps the fields without a manager that a new object has as well. If none can be
// tried and the API server accepted an apply, which keeps all of them, it does so, too. It reports
// whether the object changes.
func (s *step) keepUnmanaged(ctx context.Context, m *drift.Implied, answer *unstructured.Unstructured) (bool, error) {
	fresh, err := s.fresh(ctx)
	switch {
	case fresh != nil:
		return m.Fresh(fresh.Object), nil
	case answer != nil:
		m.AsApplied()
		return true, nil
	}
	return false, err
}

// replace writes a replacement, and notes whose fields gave way.
func (s *step) replace(ctx context.Context, r *replacement) (*unstructured.Unstructured, error) {
	live, err := s.patch(ctx, r.patch, false)
	if err != nil {
		return nil, err
	}
	s.noteResidue(r.residue)
	if len(r.yielded) > 0 {
		s.note("fields of %s, which the API server does not accept along with the template, were removed", strings.Join(r.yielded, ", "))
	}

	return live, nil
}

// prepared returns the result of the dry run of the phase's entry for this write. It forgets that,
// and the notes about the object, which is written again.
func (s *step) prepared() *replacement {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	delete(s.run.rollout.notes, s.Key)
	r := s.run.rollout.replacements[s.Key]
	delete(s.run.rollout.replacements, s.Key)
	if r == nil || r.intent != s.intent() {
		return nil
	}
	return r
}

// foresee finds out how the adoption of an object changes the fields of its installer, before they
// are taken over.
func (s *step) foresee(ctx context.Context) error {
	r, implied, err := s.imply(ctx, nil)
	if err != nil && !refused(err) {
		return err
	}
	s.replacement = &replacement{intent: r.intent, kept: r.kept, foreseen: implied}
	if implied != nil {
		s.replacement.residue = s.residue(ctx, implied)
	}

	return nil
}

// reported returns which of two refusals to report: the refusal of the apply, or of the object that
// the template implies. The latter lacks the values that the API server allocated at creation, so
// it can be wrong in more places.
func reported(applied, implied error) error {
	if !refused(implied) {
		return applied
	}
	wrong := apply.CausesOf(implied)
	if slices.ContainsFunc(apply.CausesOf(applied), func(field string) bool { return slices.Contains(wrong, field) }) || len(wrong) == 0 {
		return applied
	}
	return implied
}

// residue returns the fields that left the template but stay on the object, except for fields that
// a new object would have as well.
func (s *step) residue(ctx context.Context, live *unstructured.Unstructured) []string {
	next, err := s.Desired.Object(s.Metadata)
	if err != nil {
		return nil
	}

	templates := s.formerTemplates()
	if s.Foreign && s.live != nil {
		templates = append(templates, drift.Installed(s.run.Tracker.Names, s.live))
	}

	owned := drift.OwnedByOthers(s.run.Tracker.Names, next, live, s.Foreign)
	stays := func(fresh map[string]any) (fields []string) {
		for _, former := range templates {
			fields = append(fields, drift.Residue(former, next, live.Object, fresh, owned)...)
		}
		slices.Sort(fields)
		return slices.Compact(fields)
	}
	if len(stays(nil)) == 0 {
		return nil
	}

	fresh, _ := s.fresh(ctx)
	if fresh == nil {
		return nil // not known, and not worth a failure
	}
	return stays(fresh.Object)
}

func (s *step) noteResidue(fields []string) {
	if len(fields) == 0 {
		return
	}
	names := s.run.Tracker.Names
	s.note("the API server keeps %s, which left the template: delete the object, or annotate it %s: %s, to have it created again",
		strings.Join(fields, ", "), names.OnImmutableAnnotation, names.OnImmutableRecreate)
}

// note keeps a fact about the object that its users should know although the write succeeded.
func (s *step) note(format string, args ...any) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	r, text := s.run.rollout, fmt.Sprintf(format, args...)
	if before := r.notes[s.Key]; before != "" && before != text {
		text = before + "; " + text
	}
	r.notes[s.Key], r.noted = text, false
}

// fresh returns a new object of the template, by a dry run under another name. It returns nil if
// the API server refuses that: for a quota, because a webhook admits only one such object, or
// because the content determines the name, as in a CustomResourceDefinition.
func (s *step) fresh(ctx context.Context) (*unstructured.Unstructured, error) {
	if s.asFresh == nil {
		template, err := s.Desired.Object(s.Metadata)
		if err != nil {
			return nil, err
		}
		obj := &unstructured.Unstructured{Object: template}
		obj.SetName(s.Key.Name[:min(len(s.Key.Name), 50)] + "-fresh")
		fresh, err := s.create(ctx, obj.GetName(), obj.Object, true)
		switch {
		case apply.Classify(err) == apply.Retry:
			return nil, err
		case err != nil:
			fresh = &unstructured.Unstructured{}
		}
		s.asFresh = fresh
	}

	if s.asFresh.Object == nil {
		return nil, nil
	}
	return s.asFresh, nil
}

// ImmutableError is a refusal to change a field of an object that could be created with it.
type ImmutableError struct{ error }

// Unwrap returns the refusal.
func (e *ImmutableError) Unwrap() error { return e.error }

// immutable returns the refusal of a template as an ImmutableError if the API server would create
// the object, and still refuses the change: a webhook can stop refusing both between two requests.
func (s *step) immutable(ctx context.Context, template map[string]any, refusal error) error {
	obj, err := s.Desired.Object(s.Metadata)
	if err != nil {
		return err
	}

	// An object is validated before it is looked for.
	if _, err := s.create(ctx, s.Key.Name, obj, true); err != nil && !apierrors.IsAlreadyExists(err) {
		return refusal
	}
	if _, err := s.send(ctx, template, apply.ApplyRequest{Force: true, DryRun: true}); !refused(err) {
		return refusal
	}
	return &ImmutableError{refusal}
}
