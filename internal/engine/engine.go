package engine

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// Engine performs the steps of plans against the cluster that objects are rolled out
// to. It is shared by all owners and safe for concurrent use.
type Engine struct {
	Cluster cluster.Cluster
	Tracker *tracking.Tracker
	Pool    Runner
	// Exists reads from the API server whether a ServiceAccount exists, because rights can be bound
	// to one that does not. Without the function, all are assumed to exist.
	Exists func(ctx context.Context, account objects.Account) (bool, error)
	// Rights reads the rights of an account as the account. Without the function, a claim does not
	// require proof of them.
	Rights func(account objects.Account) Rights
	// Count is called with each event that a process can count; it can be nil.
	Count func(Event)

	lookups lookups
}

// Rights are the rights of an account, as the API server reports them to the account itself.
type Rights interface {
	// Rules returns the rules in a namespace, including the rules for the whole cluster; complete
	// means that there are no others.
	Rules(ctx context.Context, namespace string) (rules []rbacv1.PolicyRule, complete bool, err error)
	Allowed(ctx context.Context, access authorizationv1.SelfSubjectAccessReviewSpec) (bool, error)
}

// Event is a write that was performed or failed, by its Action; a Fight; or how long a rollout or a
// phase Took.
type Event struct {
	Kind   EventKind
	Action phases.Action
	Failed bool
	Took   time.Duration
}

// EventKind is the kind of an Event.
type EventKind int

// Write is a write to a managed object. Fight is a correction that another writer changes back
// again and again. RolledOut and PhaseReady are from the claim of a revision to its success, and
// from the opening of a phase until its objects were ready.
const (
	Write EventKind = iota
	Fight
	RolledOut
	PhaseReady
)

// Happened passes an event on to Count.
func (e *Engine) Happened(event Event) {
	if e.Count != nil {
		e.Count(event)
	}
}
