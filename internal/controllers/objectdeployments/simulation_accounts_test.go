package objectdeployments

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/permissions"
	inmemory "lockstep.run/lockstep/test/memory"
)

// accounts are the accounts of templates; the empty one is the manager itself.
var accounts = []string{"", "a", "b"}

// right is a right of an account on all objects.
type right struct{ account, verb string }

// grant takes rights and accounts away, or gives them back.
func (s *simulation) grant(name string) {
	account := sample(s, "account", accounts[1:])
	switch name {
	case "add account", "remove account":
		s.absent[account] = name == "remove account"
		s.logf("%s %s", name, account)
	case "forbid", "permit":
		verb := sample(s, "verb", []string{"create", "patch", "delete"})
		s.lost[right{account, verb}] = name == "forbid"
		s.logf("%s %s %s", name, account, verb)
	}
}

// rightsOf answers for an account: by rules that are not always complete.
func (p *process) rightsOf(account objects.Account) engine.Rights { return answers{p, account} }

type answers struct {
	*process
	account objects.Account
}

func (a answers) Rules(context.Context, string) ([]rbacv1.PolicyRule, bool, error) {
	if a.chaos && uniform(8).Draw(a.t, "no answer") == 0 {
		return nil, false, errors.New("no answer")
	}
	if uniform(4).Draw(a.t, "incomplete") == 0 {
		return nil, false, nil
	}
	rule := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}}
	for _, verb := range permissions.Verbs {
		if !a.lost[right{a.account.Name, verb}] {
			rule.Verbs = append(rule.Verbs, verb)
		}
	}
	return []rbacv1.PolicyRule{rule}, true, nil
}

func (a answers) Allowed(_ context.Context, access authorizationv1.SelfSubjectAccessReviewSpec) (bool, error) {
	return !a.lost[right{a.account.Name, access.ResourceAttributes.Verb}], nil
}

// newAccount is the newest template with another account.
func (s *simulation) newAccount() *template {
	t := *s.templates[len(s.templates)-1]
	t.name, t.account = fmt.Sprintf("t%d", len(s.templates)+1), sample(s, "account", accounts)
	if s.remote {
		t.account = ""
	}
	s.templates = append(s.templates, &t)
	return &t
}

// authorize refuses a request of an account without the right for it.
func (s *simulation) authorize(r inmemory.Request, before *object) error {
	verbs := []string{r.Verb}
	if r.Verb == "apply" {
		verbs = []string{"patch"}
		if before == nil {
			verbs = append(verbs, "create")
		}
	}
	for _, verb := range verbs {
		if r.Account.IsZero() || !s.lost[right{r.Account.Name, verb}] {
			continue
		}
		resource := strings.ToLower(r.Key.Kind) + "s"
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: fmt.Sprintf("%s.%s %q is forbidden: User %q cannot %s resource %q in API group %q in the namespace \"n\"",
				resource, r.Key.Group, r.Key.Name, r.Account.User(), verb, resource, r.Key.Group),
		}}
	}
	return nil
}

// releases reports whether a request takes the label or the controller off an object.
func (s *simulation) releases(r inmemory.Request, before, after *object) bool {
	return r.Verb == "patch" && before.value == after.value &&
		(before.labelled && !after.labelled || before.controller() != after.controller() && after.controller() != s.owner)
}

// checkAccount checks that a write or dry run is made as the account of the revision that is
// written, or that has the object to be removed, and that only a release is the manager's.
func (s *simulation) checkAccount(r inmemory.Request, before, after *object) {
	if s.late {
		return
	}
	if name, fresh := strings.CutSuffix(r.Key.Name, "-fresh"); fresh && r.DryRun {
		r.Key.Name = name // to see how the API server would create the object
	}
	if r.Verb == "patch" && r.Account.IsZero() && !after.labelled && after.controller() == "" && before.value == after.value {
		return // others have taken label and reference off before
	}
	if s.releases(r, before, after) {
		if !r.Account.IsZero() {
			s.failf("%s was released as %s", r.Key, r.Account)
		}
		return
	}
	writer := s.writerOf(r.Key)
	if r.Verb == "delete" && (writer == nil || !s.recreates(r.Key, before) || !s.stays(r.Key)) {
		writer = s.newestWith(r)
	}
	want := s.engine.reconciled.Spec.Template.Spec.ServiceAccountName // of objects that no revision has
	if writer != nil {
		want = writer.template.account
	}
	if r.Account.Name != want || want != "" && r.Account.Namespace != "n" {
		s.failf("%s was made as %s, and its revision has the account %q", r, r.Account, want)
	}
}

// newestWith returns the newest revision that the engine knows to have the object.
func (s *simulation) newestWith(r inmemory.Request) *set {
	for _, set := range slices.Backward(s.sets) {
		if rev := s.engine.loaded(set.uid); rev != nil && rev.Contains(r.Key) {
			return set
		}
	}
	return nil
}
