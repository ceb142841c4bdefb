package harness

import (
	"context"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// AwaitRight waits until the API server grants a right to a user: its own watches have to see
// the role and its binding first.
func (e *Env) AwaitRight(tb testing.TB, user string, right authorizationv1.ResourceAttributes) {
	tb.Helper()
	e.awaitReview(tb, user, right, true)
}

// AwaitNoRight waits until the API server no longer grants it.
func (e *Env) AwaitNoRight(tb testing.TB, user string, right authorizationv1.ResourceAttributes) {
	tb.Helper()
	e.awaitReview(tb, user, right, false)
}

func (e *Env) awaitReview(tb testing.TB, user string, right authorizationv1.ResourceAttributes, allowed bool) {
	tb.Helper()
	Eventually(tb, Patience, fmt.Sprintf("the right of %s to %s %s to be %t", user, right.Verb, right.Resource, allowed), func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &right}}
		if err := e.Client.Create(ctx, review); err != nil {
			return err
		}
		if review.Status.Allowed != allowed {
			return fmt.Errorf("it is %t: %s", review.Status.Allowed, review.Status.Reason)
		}
		return nil
	})
}
