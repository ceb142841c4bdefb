package sources

import (
	"context"
	"fmt"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
)

const (
	secretAnswers     = 4096            // kept answers, one per account and Secret
	secretAnswerKept  = time.Minute     // for permitted reads: a revoked right stays usable for this long
	secretRefusalKept = 5 * time.Second // for refused reads: shorter than the first pause after a failed load
)

// Review asks the API server about rights by creating a SubjectAccessReview.
type Review func(context.Context, *authorizationv1.SubjectAccessReview) error

// Guard decides which Secrets are read for which ServiceAccounts. It keeps answers of the API
// server for a while, so that most reads need no request. It is safe for concurrent use.
type Guard struct {
	review  Review
	get     Get
	answers *cache.LRUExpireCache
}

// NewGuard returns a Guard that asks with review, and reads accounts with get.
func NewGuard(review Review, get Get) *Guard {
	return &Guard{review: review, get: get, answers: cache.NewLRUExpireCache(secretAnswers)}
}

type question struct {
	account objects.Account
	secret  Ref
}

// ForbiddenError means that a Secret is not read for an account.
type ForbiddenError struct {
	Account objects.Account
	Ref     Ref
}

// Error names the account, the Secret and the remedy.
func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s may not get %s, and this manager reads a Secret only for accounts that may get it: grant it get on this Secret, or name another one. Check: kubectl auth can-i get secret/%s -n %s --as=%s",
		e.Account, e.Ref, e.Ref.Name, e.Ref.Namespace, e.Account.User())
}

// Status makes the error look like one of the API server, so that callers treat it as temporary.
func (e *ForbiddenError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: e.Error()}
}

// Check returns a *ForbiddenError if the account is not allowed to get a Secret. The zero account
// is the manager's, which is always allowed to.
func (g *Guard) Check(ctx context.Context, account objects.Account, ref Ref) error {
	if account.IsZero() || ref.Kind != KindSecret {
		return nil
	}
	allowed, err := g.ask(ctx, question{account, ref})
	if err == nil && !allowed {
		err = &ForbiddenError{account, ref}
	}
	return err
}

// ask returns a known answer, or asks the API server.
func (g *Guard) ask(ctx context.Context, q question) (allowed bool, err error) {
	if answer, known := g.answers.Get(q); known {
		return answer.(bool), nil
	}

	// Rights can be bound to the name of an account that no longer exists.
	account, err := g.get(ctx, Ref{Kind: KindServiceAccount, Namespace: q.account.Namespace, Name: q.account.Name})
	if err != nil {
		return false, fmt.Errorf("read %s: %w", q.account, err)
	}

	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: q.account.User(), Groups: append(serviceaccount.MakeGroupNames(q.account.Namespace), user.AllAuthenticated),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: q.secret.Namespace, Verb: "get", Version: "v1", Resource: corev1.ResourceSecrets.String(), Name: q.secret.Name,
		},
	}}
	if account != nil {
		if err := g.review(ctx, review); err != nil {
			return false, fmt.Errorf("ask whether %s may get %s: %w", q.account, q.secret, err)
		}
	}

	kept := secretRefusalKept
	if review.Status.Allowed {
		kept = secretAnswerKept
	}

	g.answers.Add(q, review.Status.Allowed, kept)
	return review.Status.Allowed, nil
}

// For returns a Get that reads Secrets only if the account is allowed to.
func (g *Guard) For(account objects.Account, get Get) Get {
	if account.IsZero() {
		return get
	}
	return func(ctx context.Context, ref Ref) (*Object, error) {
		if err := g.Check(ctx, account, ref); err != nil {
			return nil, err
		}
		return get(ctx, ref)
	}
}

// never has the types of Secrets that are never read for packages, with a description.
var never = map[string]string{
	string(corev1.SecretTypeServiceAccountToken): "the token of a ServiceAccount",
	string(corev1.SecretTypeBootstrapToken):      "a token of the cluster itself",
	"helm.sh/release.v1":                         "a release of Helm",
	corev1alpha1.SecretSliceType:                 "a part of an installed package",
	corev1alpha1.HashKeyType:                     "a key of the engine",
}

// refused returns why a Secret of this type is not read for packages and repositories, or an empty
// string if it is.
func refused(secretType string) string {
	if what := never[secretType]; what != "" {
		return fmt.Sprintf("it is of the type %s, %s, which is never read for a package or repository: make a Secret for this purpose", secretType, what)
	}
	return ""
}
