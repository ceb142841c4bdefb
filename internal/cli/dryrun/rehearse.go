package dryrun

import (
	"context"
	"errors"
	"slices"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// Rehearsal is what an engine does to a deployment that it takes over as it is.
type Rehearsal struct {
	// Differs means that the template of the request is not that of the newest revision: it would be a new one.
	Differs bool
	// Changes are the objects that would be written, in the order of the phases, and Refusals why a write is refused.
	Changes  []Change
	Refusals []Refusal
	// Ours are writes to the deployment, its revisions and slices, but for those of statuses.
	Ours []string
	// NotReady are the objects that do not pass the probes, by the objects as they are now.
	NotReady []Refusal
	// Was and Is are the conditions of the deployment before and after.
	Was, Is []metav1.Condition
	// Warnings are about what could not be read.
	Warnings []string
}

// Rehearse runs the controller of deployments on the installed objects, by the specs of the deployment and its revisions: a
// pause, an activation that is awaited, a rejection. Probes are evaluated on the live objects. The template of the request is compared,
// and not rolled out; without phases it is not.
func Rehearse(ctx context.Context, c *Cluster, r Request) (found *Rehearsal, err error) {
	r.rehearses = true
	err = retried(func() error {
		found, err = rehearseOnce(ctx, c, r)
		return err
	})
	return found, err
}

func rehearseOnce(ctx context.Context, c *Cluster, r Request) (*Rehearsal, error) {
	in, err := c.gather(ctx, r)
	if err != nil || in.deployment == nil || len(in.sets) == 0 {
		return &Rehearsal{}, err
	}
	found := &Rehearsal{Differs: in.fresh, Was: *in.deployment.StatusConditions()}
	in.fresh, in.number = false, in.sets[len(in.sets)-1].ObjectSetSpec().Revision
	s, err := in.simulation(ctx)
	if err != nil {
		return nil, err
	}
	err = s.rehearse(ctx)
	switch {
	case errors.Is(err, errEndless):
		found.Refusals = append(found.Refusals, Refusal{Message: err.Error()})
	case err != nil:
		return nil, err
	}
	dep := in.Scope.NewObjectDeployment()
	if err := client.IgnoreNotFound(s.home.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: in.Name}, dep)); err != nil {
		return nil, err
	}
	found.Is = *dep.StatusConditions()
	found.Changes, found.Ours = s.writes(in.sensitive()), slices.Compact(s.ours)
	found.Warnings = append(in.warnings, s.accountWarnings()...)
	s.collectBlockers(found)
	return found, nil
}

// quietRounds is after how many reconciles without a write nothing more is expected. Each comes later than any grace and backoff of
// the engine.
const quietRounds = 3

// rehearse reconciles until nothing is written any more.
func (s *simulation) rehearse(ctx context.Context) error {
	ctx = logr.NewContext(ctx, logr.Discard())
	for quiet, rounds := 0, 0; quiet < quietRounds && rounds < mostRounds(len(s.objects)); rounds++ {
		before := s.count()
		result, err := s.reconcile(ctx)
		if err != nil {
			return err
		}
		quiet++
		if s.count() > before {
			quiet = 0
		}
		if s.plan == nil || result.RequeueAfter == 0 {
			return nil
		}
		s.wait(max(result.RequeueAfter, unblockedWait))
	}
	return nil
}

// count counts the writes so far.
func (s *simulation) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.ours)
	for _, o := range s.objects {
		n += o.writes
	}
	return n
}

// writes returns the objects that were written, each with its changes, in the order of the phases.
func (s *simulation) writes(sensitive map[objects.Key]bool) []Change {
	var all []Change
	seen := map[objects.Key]bool{}
	add := func(key objects.Key) {
		if seen[key] || s.object(key).writes == 0 {
			return
		}
		seen[key] = true
		c, changed := s.change(key)
		if !changed {
			c.Action, c.Unverified = ActionChange, s.object(key).unverified
		}
		if sensitive[key] {
			hide(c.Fields)
		}
		all = append(all, c)
	}
	for _, rev := range s.installed {
		for _, key := range rev.Keys() {
			add(key)
		}
	}
	for _, key := range sortedKeys(s.objects) {
		add(key)
	}
	return all
}

// collectBlockers adds the blockers of the revisions at the end.
func (s *simulation) collectBlockers(found *Rehearsal) {
	if s.plan == nil {
		return
	}
	revisions := s.rollout.Revisions()
	for i := range min(len(revisions), len(s.plan.Reports)) {
		if why := revisions[i].Blocked(); why != "" {
			found.Refusals = append(found.Refusals, Refusal{Message: why})
		}
		for _, b := range s.plan.Reports[i].Blocking {
			r := Refusal{Phase: b.Phase, Group: b.Key.Group, Kind: b.Key.Kind, Namespace: b.Key.Namespace, Name: b.Key.Name, Message: b.Message}
			switch b.Kind {
			case phases.BlockProbe, phases.BlockProbeFalse, phases.BlockWait, phases.BlockUnseen:
				found.NotReady = append(found.NotReady, r)
			default:
				found.Refusals = append(found.Refusals, r)
			}
		}
	}
}
