package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/schemas"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

const (
	// collisionRetry is the time after which an object that another owner holds is read again:
	// without the label it is not watched.
	collisionRetry = 30 * time.Second
	// refusedRetry is the longest pause after a refusal that only a user mends.
	refusedRetry = 5 * time.Minute
)

// recover handles the error of a step: after a lost race the object is read again, any other error
// is recorded. A conflict about an object that is unchanged is recorded, too, because no other
// attempt would resolve it: a webhook can return one.
func (s *step) recover(ctx context.Context, err error) error {
	switch class := apply.Classify(err); {
	case class == apply.Absent && s.Desired == nil:
		s.gone()
	case class == apply.Conflict, class == apply.Replaced, class == apply.Absent:
		obs, lookErr := s.read(ctx)
		if lookErr != nil {
			s.run.fail(s.Step, lookErr, false)
			return nil
		}
		if s.Live != nil && obs != nil && obs.UID == s.Live.UID && obs.ResourceVersion == s.Live.ResourceVersion {
			s.run.fail(s.Step, err, false)
			return nil
		}
		if s.Action == phases.Create && obs != nil {
			s.refuse(obs)
		}
	default:
		err = s.run.orMissing(ctx, s.Step, err)
		s.run.fail(s.Step, err, isMissing(err))
	}

	return nil
}

// refuse records that an object which appeared meanwhile must not be adopted. It is read again
// after a backoff because it is not watched.
func (s *step) refuse(obs *objects.Observed) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	r := s.run.rollout
	v := phases.Decide(phases.DecisionInput{
		Key: s.Key, Desired: s.Desired, Labels: s.Labels, Owner: r.Owner, Controllers: r.Controllers,
		Live: phases.LiveState{Synced: true, Object: obs}, Applied: *r.applied.At(s.Key), Now: s.run.Cluster.Now(),
	})
	if v.Action != phases.Refuse {
		return
	}

	r.applied.At(s.Key).Failure = &phases.Failure{
		Content: s.Desired.Content, Collision: true, Preflight: true,
		Message: v.Message, Until: s.run.Cluster.Now().Add(collisionRetry),
	}

	delete(r.unwatchedRecords, s.Key)
}

// fail records why a step failed and when to retry it.
func (x *run) fail(s phases.Step, err error, preflight bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	rec := x.rollout.applied.At(s.Key)
	var immutable *ImmutableError
	f := &phases.Failure{
		Message: x.explain(s, err), Reason: x.rollout.accountReason(s, err), Preflight: preflight, Attempts: 1, Immutable: errors.As(err, &immutable),
	}
	if s.Live != nil {
		f.UID = s.Live.UID
	}
	if s.Desired != nil {
		f.Content = s.Desired.Content
	}
	if old := rec.Failure; old != nil && old.Content == f.Content {
		f.Attempts = old.Attempts + 1
	}

	f.Until = x.Cluster.Now().Add(backoff(err, f.Attempts))
	rec.Failure = f
}

// catch, deferred, makes a panic the failure of the one step: a goroutine of the pool
// would end the process.
func (x *run) catch(ctx context.Context, s phases.Step) {
	if p := recover(); p != nil {
		x.fail(s, panics.Recovered(log.FromContext(ctx), p, s.Action.String()+" of "+s.Key.String()), false)
	}
}

// backoff returns the pause before a failed step is tried again: short if the failure can pass by
// itself, long if a user has to act, and at least the time that the API server requests.
func backoff(err error, attempts int) time.Duration {
	first, longest := 100*time.Millisecond, 30*time.Second
	switch {
	case isMissing(err):
		first = missingRetry // one read for all objects
	case apply.Classify(err) == apply.Blocked:
		first, longest = time.Second, refusedRetry
	}
	return max(min(first<<min(attempts-1, 16), longest), apply.RetryAfter(err))
}

// explain puts the API server's refusal into words. The API server's message does not always state
// that a field is immutable.
func (x *run) explain(s phases.Step, err error) string {
	text := x.refusal(s, err)
	var immutable *ImmutableError
	if errors.As(err, &immutable) && !strings.Contains(text, "immutable") {
		text += " (immutable in an object that exists)"
	}
	return text
}

func (x *run) refusal(s phases.Step, err error) string {
	var noMatch *meta.NoKindMatchError
	if errors.As(err, &noMatch) {
		if state := x.Cluster.State(s.Key.GroupKind()); state.Served && s.Desired != nil {
			return fmt.Sprintf("the API server does not serve %s, but version %s of it",
				s.Desired.GroupVersionKind().GroupVersion().String()+" "+s.Key.Kind, state.Version)
		}
		return "the API server does not serve " + s.Key.GroupKind().String()
	}

	if text, about := x.rollout.explainAccount(s, err); about {
		return text
	}
	if text, sensitive := x.rollout.Reduced(s.Key, err); sensitive {
		return text
	}

	return apply.WithoutDumps(strings.TrimSpace(err.Error()))
}

// Reduced returns the text of an error about an object of an owner with sensitive values, without
// any words of a server, a webhook or a proxy (invariant 8); sensitive means that a revision has
// such values. An object that exposes them can have them anywhere, also in paths.
func (r *Rollout) Reduced(key objects.Key, err error) (text string, sensitive bool) {
	if !r.sensitive() {
		return "", false
	}

	var invalid *schemas.InvalidError
	var unavailable *schemas.UnavailableError
	var caught *panics.Error
	switch exposes := r.exposes(key); {
	case errors.As(err, &caught):
		return caught.Error(), true // quotes nothing
	case errors.As(err, &invalid):
		return invalid.Reduced(exposes), true // our own words, without values
	case errors.As(err, &unavailable):
		return unavailable.Error(), true // about schemas, not about the object
	case exposes:
		return apply.BriefWithoutFields(err), true
	}
	return apply.Brief(err), true
}
