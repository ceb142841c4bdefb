package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/permissions"
)

// clusterWide is a namespace that cannot exist, and so has no RoleBinding: its rules are the rules
// for the whole cluster.
const clusterWide = "-"

// authorize proves that the account of a revision has the rights that its objects need; nil if it
// has them. It is also nil if that cannot be found out, because the API server then refuses
// forbidden writes. It only reads.
func (e *Engine) authorize(ctx context.Context, r *Rollout, rev *Revision) (*Unauthorized, error) {
	if rev.Account.IsZero() || e.Rights == nil {
		return nil, nil
	}

	missing, err := (&proof{Engine: e, rollout: r, revision: rev, rights: e.Rights(rev.Account), left: limits.Reviews}).missing(ctx)
	switch {
	case isMissing(err):
		return &Unauthorized{ReasonServiceAccountMissing, err.Error()}, nil
	case ctx.Err() != nil, apply.Classify(err) == apply.NotLeading:
		return nil, err
	case err != nil:
		log.FromContext(ctx).V(1).Info("cannot ask for the rights of the account", "revision", rev.Name, "error", err.Error())
		return nil, nil
	case len(missing) == 0:
		return nil, nil
	}

	remedy := "grant them"
	if r.RolesCommand != "" {
		remedy = r.RolesCommand + " prints roles with them"
	}
	return &Unauthorized{ReasonForbidden, fmt.Sprintf("%s lacks rights, and no objects are written without all of them (%s): %s",
		rev.Account, remedy, permissions.Describe(missing))}, nil
}

// proof collects the rights of one revision's account.
type proof struct {
	*Engine
	rollout  *Rollout
	revision *Revision
	rights   Rights

	// left is the number of remaining questions.
	left  int
	rules map[string]*permissions.Held
	// lacks are demands that are certainly not met, and unknown are demands whose rights have to be
	// requested one by one.
	lacks, unknown []permissions.Demand
}

func (p *proof) missing(ctx context.Context) ([]permissions.Demand, error) {
	if err := (&run{Engine: p.Engine, rollout: p.rollout}).require(ctx, p.revision.Account); err != nil {
		return nil, err
	}

	request := permissions.Request{Kinds: map[schema.GroupKind]permissions.Kind{}, Released: map[*unstructured.Unstructured]bool{}}
	for _, d := range p.revision.Objects() {
		if d.Delegate == nil {
			if err := p.add(&request, d); err != nil {
				return nil, err
			}
		}
	}

	account := permissions.Subject{Namespace: p.revision.Account.Namespace, Name: p.revision.Account.Name}
	in := map[string][]permissions.Demand{}
	for _, d := range permissions.Demands(request, account) {
		in[d.Namespace] = append(in[d.Namespace], d)
	}

	if err := p.list(ctx, in); err != nil {
		return nil, err
	}
	if err := p.ask(ctx); err != nil {
		return nil, err
	}
	return p.lacks, nil
}

// add adds an object, and its kind as far as it is known. For most objects only the name matters;
// the content also matters if it grants rights or defines a kind.
func (p *proof) add(r *permissions.Request, d *objects.Desired) error {
	u := &unstructured.Unstructured{}
	switch d.Key.Group {
	case rbacv1.GroupName, "apiextensions.k8s.io":
		if err := u.UnmarshalJSON(d.Raw); err != nil {
			return err
		}
	default:
		u.SetGroupVersionKind(d.GroupVersionKind())
	}

	u.SetNamespace(d.Key.Namespace)
	u.SetName(d.Key.Name)
	r.Objects = append(r.Objects, u)
	r.Released[u] = d.Keep
	kind := d.Key.GroupKind()
	if mapping, err := p.Cluster.Mapping(kind, ""); err == nil {
		r.Kinds[kind] = permissions.Kind{
			Resource: mapping.Resource.Resource, Namespaced: mapping.Scope.Name() == "namespace", Custom: p.Cluster.State(kind).Custom,
		}
	}

	return nil
}

// list lists the rules of the account in the cluster, and in each namespace for which they do not
// suffice.
func (p *proof) list(ctx context.Context, in map[string][]permissions.Demand) error {
	p.rules = map[string]*permissions.Held{}
	if len(in[""]) > 0 || len(in) > 1 {
		if err := p.listIn(ctx, "", in[""]); err != nil {
			return err
		}
	}

	for _, namespace := range slices.Sorted(maps.Keys(in)) {
		demands := in[namespace]
		if held := p.rules[""]; namespace != "" && held != nil {
			demands = slices.DeleteFunc(demands, held.Meets)
		}
		if namespace == "" || len(demands) == 0 {
			continue
		}
		if p.left == 0 {
			break // the API server decides about the rest
		}
		if err := p.listIn(ctx, namespace, demands); err != nil {
			return err
		}
	}

	return nil
}

func (p *proof) listIn(ctx context.Context, namespace string, demands []permissions.Demand) error {
	where := namespace
	if where == "" {
		where = clusterWide
	}

	p.left--
	rules, complete, err := p.rights.Rules(ctx, where)
	if err != nil {
		return err
	}

	held := permissions.NewHeld(rules)
	p.rules[namespace] = held
	for _, d := range demands {
		switch {
		case held.Meets(d):
		case complete:
			p.lacks = append(p.lacks, d)
		default:
			p.unknown = append(p.unknown, d)
		}
	}

	return nil
}

// question is one right in a namespace.
type question struct {
	namespace string
	right     permissions.Right
}

// ask asks about single rights: first about the rights on all objects of a resource, then about the
// demands that these leave open.
func (p *proof) ask(ctx context.Context) error {
	answers := map[question]bool{}
	met := func(d permissions.Demand) bool {
		all := d.Right
		all.Name = ""
		return answers[question{d.Namespace, all}] || answers[question{d.Namespace, d.Right}] || answers[question{d.Namespace, d.Instead}]
	}

	for _, questions := range []func(permissions.Demand) []permissions.Right{
		func(d permissions.Demand) []permissions.Right { d.Right.Name = ""; return []permissions.Right{d.Right} },
		func(d permissions.Demand) []permissions.Right { return []permissions.Right{d.Right, d.Instead} },
	} {
		var due []question
		seen := map[question]bool{}
		for _, d := range p.unknown {
			if met(d) {
				continue
			}
			for _, right := range questions(d) {
				q := question{d.Namespace, right}
				if _, asked := answers[q]; asked || seen[q] || right == (permissions.Right{}) {
					continue
				}
				seen[q] = true
				due = append(due, q)
			}
		}
		if err := p.put(ctx, due[:min(len(due), p.left)], answers); err != nil {
			return err
		}
	}

	for _, d := range p.unknown {
		_, asked := answers[question{d.Namespace, d.Right}]
		_, askedInstead := answers[question{d.Namespace, d.Instead}]
		if asked && (askedInstead || d.Instead == permissions.Right{}) && !met(d) {
			p.lacks = append(p.lacks, d)
		}
	}

	return nil
}

// put puts questions to the API server, in parallel.
func (p *proof) put(ctx context.Context, questions []question, answers map[question]bool) error {
	var mu sync.Mutex
	p.left -= len(questions)
	return p.each(ctx, p.rollout, false, len(questions), func(i int) error {
		allowed, err := p.rights.Allowed(ctx, questions[i].access())
		mu.Lock()
		defer mu.Unlock()
		answers[questions[i]] = allowed
		return err
	})
}

func (q question) access() authorizationv1.SelfSubjectAccessReviewSpec {
	resource, subresource, _ := strings.Cut(q.right.Resource, "/")
	return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: q.namespace, Verb: q.right.Verb, Group: q.right.Group, Resource: resource, Subresource: subresource, Name: q.right.Name,
	}}
}

// forbid blocks the revision until its account is looked at again, if there is a reason.
func (r *Revision) forbid(why *Unauthorized, now time.Time) {
	r.Unauthorized = why
	if why == nil {
		return
	}

	longest := refusedRetry
	if why.Reason == ReasonServiceAccountMissing {
		longest = collisionRetry // one read
	}
	r.lookAgain(now, longest)
	r.Block(why.Message)
}

// lookAgain checks the revision again after a pause, which doubles from a second each time.
func (r *Revision) lookAgain(now time.Time, longest time.Duration) {
	r.recheck = now.Add(min(time.Second<<min(r.looks, 16), longest))
	r.looks++
}
