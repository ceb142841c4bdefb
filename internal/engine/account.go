package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

const accountKnown = 10 * time.Second // during which a ServiceAccount is assumed to exist after a look: a rollout looks once

// MissingAccountError is a write that was not sent because its account does not exist.
type MissingAccountError struct{ Account objects.Account }

// Error names the account and the remedy.
func (e *MissingAccountError) Error() string {
	return fmt.Sprintf("%s does not exist: create it, with the rights for the objects of the package, or name another one in spec.serviceAccountName", e.Account)
}

// isMissing reports whether an error means that an account does not exist.
func isMissing(err error) bool {
	var missing *MissingAccountError
	return errors.As(err, &missing)
}

// writes returns the writes as the account of the step. The account has to exist, because rights
// can be bound to one that does not.
func (s *step) writes(ctx context.Context) (cluster.Writes, error) {
	if err := s.run.require(ctx, s.Account); err != nil {
		return nil, err
	}
	return s.run.Cluster.As(s.Account), nil
}

// require looks for an account, unless it was there a moment ago.
func (x *run) require(ctx context.Context, account objects.Account) error {
	if account.IsZero() || x.Exists == nil {
		return nil
	}

	x.accounts.Lock()
	defer x.accounts.Unlock()
	known, now := x.rollout.accounts, x.Cluster.Now()
	last, looked := known[account]
	// A negative age means that the clock was set back.
	if age := now.Sub(last.at); !looked || age < 0 || age >= accountKnown || !last.exists && age >= missingRetry {
		exists, err := x.Exists(ctx, account)
		if err != nil {
			return fmt.Errorf("cannot look for %s: %w", account, err)
		}
		last = lookedUp{exists, now}
		known[account] = last
	}

	if !last.exists {
		return &MissingAccountError{account}
	}
	return nil
}

// orMissing returns that the account does not exist instead of a denial because of that. An account
// that was there a moment ago is not looked for again.
func (x *run) orMissing(ctx context.Context, s phases.Step, err error) error {
	if x.rollout.accountReason(s, err) != ReasonForbidden {
		return err
	}
	x.accounts.Lock()
	if last := x.rollout.accounts[s.Account]; x.Cluster.Now().Sub(last.at) >= missingRetry {
		delete(x.rollout.accounts, s.Account)
	}
	x.accounts.Unlock()
	if missing := x.require(ctx, s.Account); isMissing(missing) {
		return missing
	}

	return err
}

// missingRetry is the shortest pause before an account that is missing is looked for again.
const missingRetry = time.Second

// accountReason returns the reason of a failure that a right of the account, or of the user of a
// kubeconfig, would fix.
func (r *Rollout) accountReason(s phases.Step, err error) string {
	if r.Owner.Remote() {
		if _, about := ExplainTarget(err, false); about {
			return ReasonForbidden
		}
		return ""
	}
	if isMissing(err) {
		return ReasonServiceAccountMissing
	}
	if _, denied := apply.AsUnauthorized(err); denied && !s.Account.IsZero() {
		return ReasonForbidden
	}
	return ""
}

// explainAccount describes a refusal of an account in the engine's own words, because the API
// server's can repeat the rights that an object grants.
func (r *Rollout) explainAccount(s phases.Step, err error) (text string, about bool) {
	if r.Owner.Remote() {
		return ExplainTarget(err, false)
	}

	var missing *MissingAccountError
	if errors.As(err, &missing) {
		return missing.Error(), true
	}

	denied, is := apply.AsUnauthorized(err)
	var request *apply.Error
	if !is || s.Account.IsZero() || !errors.As(err, &request) {
		return "", false
	}

	resource := request.Resource
	if s.Key.Group != "" {
		resource += "." + s.Key.Group
	}

	flag := ""
	if s.Key.Namespace != "" {
		flag = " -n " + s.Key.Namespace
	}

	switch denied.Verb {
	case "impersonate":
		return fmt.Sprintf("the manager may not impersonate %s: give it the verb impersonate on serviceaccounts, as its ClusterRole has it", s.Account), true
	case "escalate":
		return fmt.Sprintf("%s may not grant rights that it does not have itself: give it these, or the verb escalate on %s, or bind for a binding", s.Account, resource), true
	}

	return fmt.Sprintf("%s may not %s %s: grant it that right; kubectl auth can-i %s %s%s --as=%s",
		s.Account, denied.Verb, resource, denied.Verb, resource, flag, s.Account.User()), true
}
