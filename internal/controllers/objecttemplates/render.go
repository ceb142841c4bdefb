package objecttemplates

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/render"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases/drift"
)

// rendering is the result of one rendering, with its inputs.
type rendering struct {
	versions    string
	environment manifestsv1alpha1.PackageEnvironment
	// values is the digest of the values that were read; zero if that failed.
	values  objects.Digest
	secret  bool
	content map[string]any
	problem *problem
}

// render renders the object if an input has changed, and decides which object that is.
func (s *reconciliation) render(ctx context.Context) error {
	ready, p := readable(s.view)
	if p != nil || !ready {
		s.problem, s.unknown = p, p == nil
		return nil
	}

	versions := versions(s.sources)
	if last := s.last; last == nil || last.versions != versions || !reflect.DeepEqual(last.environment, s.environment) {
		next, err := s.renderNew(ctx, versions)
		if err != nil || next == nil {
			return err
		}
		s.last = next
	}

	if s.problem = s.last.problem; s.problem == nil {
		s.desired, s.problem = s.place()
	}
	return nil
}

// renderNew reads the values, and renders them if they have changed; nil if that has to wait.
func (s *reconciliation) renderNew(ctx context.Context, versions string) (*rendering, error) {
	next := &rendering{versions: versions, environment: s.environment}
	timed, cancel := context.WithTimeout(ctx, limits.ObjectTemplateTime)
	defer cancel()
	values := collector{config: map[string]any{}}
	for i := range s.sources {
		source := &s.sources[i]
		if source.Version == "" {
			continue // optional
		}
		next.secret = next.secret || source.secret()
		if err := values.add(timed, source.plannedSource, source.Content); err != nil {
			next.problem = invalid(corev1alpha1.ReasonSourceError, err.Error())
			return next, ctx.Err()
		}
	}

	next.values = drift.Digest(values.config)
	if last := s.last; last != nil && last.values == next.values && last.secret == next.secret && reflect.DeepEqual(last.environment, next.environment) {
		next.content, next.problem = last.content, last.problem
		return next, nil
	}

	if turn := s.pace.ReserveN(s.Now(), 1); turn.DelayFrom(s.Now()) > 0 {
		s.Requeue(turn.DelayFrom(s.Now()))
		turn.CancelAt(s.Now())
		s.unknown = true
		return nil, nil
	}

	s.memory.countRender(s.state)
	text, err := render.Object(ctx, s.tmpl.ObjectTemplateSpec().Template, values.config, s.environment)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}

	if err != nil {
		next.problem = invalid(corev1alpha1.ReasonTemplateError, "spec.template: "+explain(err, next.secret))
		return next, nil
	}

	if err := s.Memory.Hold(s.held(), renderedWeight*int64(len(text))); err != nil {
		s.Requeue(objectTemplateRetry)
		s.problem = &problem{reason: corev1alpha1.ReasonTemplateError, message: err.Error(), passes: true}
		return nil, nil
	}

	if next.content, next.problem = parse(text, next.secret); next.problem == nil && next.secret {
		next.problem = discreet(next.content, s.tmpl.ObjectTemplateSpec().Template, values.secrets)
	}
	return next, nil
}

// renderedWeight is the memory for a byte of rendered output: decoded, and as the applied object.
const renderedWeight = 4

// held returns the key of the rendered output in the account.
func (s *state) held() quota.Key {
	owner := s.rollout.Owner
	return quota.Key{Namespace: owner.Namespace, Name: "the output of " + owner.String()}
}

// expression is the start of an error of a template.
var expression = regexp.MustCompile(`^at <[^>]{0,200}>`)

// explain returns the text of an error of a template. The words of a function can quote values, so
// they are left out if one is from a Secret.
func explain(err error, secret bool) string {
	var failed *render.ObjectError
	if !secret || !errors.As(err, &failed) {
		return err.Error()
	}
	short := render.ObjectError{Line: failed.Line, Details: expression.FindString(failed.Details)}
	const why = "it failed; the reason is left out because it could quote a value of a Secret"
	if short.Details == "" {
		short.Details = why
	} else {
		short.Details += ": " + why
	}
	return short.Error()
}

// place decides which object the content is, and whether this template can have it.
func (s *reconciliation) place() (*objects.Desired, *problem) {
	gvk := kindOf(s.last.content)
	s.memory.await(s.state, gvk.GroupKind()) // before it is looked up, or a change in between would wake nothing
	state := s.Target.Cluster.State(gvk.GroupKind())
	if !state.Served && state.Err != nil {
		return nil, &problem{reason: corev1alpha1.ReasonProgressing, message: fmt.Sprintf("It is not known whether %s is served: %v", gvk.GroupKind(), state.Err), passes: true}
	}

	key, p := placed(s.last.content, s.rollout.Owner, state)
	if p == nil && s.last.secret {
		p = confined(s.last.content, key)
	}
	if p == nil {
		p = s.reserved(key)
	}
	if p != nil {
		return nil, p
	}

	if s.written != nil && s.written.Key == key && s.written.Version == gvk.Version {
		if content := drift.ContentDigest(apinames.Default, s.last.content); s.written.Content == content {
			return s.written, nil
		}
	}

	desired, err := engine.NewDesired(apinames.Default, key, gvk.Version, s.last.content)
	if err != nil {
		return nil, invalid(corev1alpha1.ReasonTemplateError, "spec.template: the output cannot be encoded as JSON")
	}
	return desired, nil
}

// reserved returns why the template cannot have an object: it is one of its sources, or part of the
// engine.
func (s *reconciliation) reserved(key objects.Key) *problem {
	for i := range s.sources {
		ref := s.sources[i].ref
		if key == (objects.Key{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}) {
			return invalid(corev1alpha1.ReasonSourceError, fmt.Sprintf("%s: it is the object that the template renders, which cannot be a source", s.sources[i].field))
		}
	}
	if why := objectsets.OfEngine(s.rollout.Owner, s.Namespace)(key); why != "" {
		return invalid(corev1alpha1.ReasonSourceError, fmt.Sprintf("spec.template: %s is a part of the engine itself: render another object", key))
	}
	return nil
}
