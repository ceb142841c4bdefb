package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"lockstep.run/lockstep/internal/limits"
)

const reviewTimeout = 10 * time.Second // of one review; without an answer, the API server's judgment of each write is enough

// Rules returns the rules that the identity of w has in a namespace. They are complete unless an
// authorizer cannot list its rules. In a namespace that cannot exist, only the cluster-wide rules
// apply.
func (w *Writer) Rules(ctx context.Context, namespace string) (rules []rbacv1.PolicyRule, complete bool, err error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := w.review(ctx, "selfsubjectrulesreviews", review); err != nil {
		return nil, false, err
	}
	for _, rule := range review.Status.ResourceRules {
		rules = append(rules, rbacv1.PolicyRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
	}
	for _, rule := range review.Status.NonResourceRules {
		rules = append(rules, rbacv1.PolicyRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
	}

	return rules, !review.Status.Incomplete && review.Status.EvaluationError == "", nil
}

// Allowed reports whether the identity of w has a right.
func (w *Writer) Allowed(ctx context.Context, access authorizationv1.SelfSubjectAccessReviewSpec) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: access}
	if err := w.review(ctx, "selfsubjectaccessreviews", review); err != nil {
		return false, err
	}
	if !review.Status.Allowed && review.Status.EvaluationError != "" {
		return false, fmt.Errorf("the API server cannot say whether it is allowed: %s", review.Status.EvaluationError)
	}
	return review.Status.Allowed, nil
}

// review sends a review and reads the answer, which can be long for an identity with many rights.
func (w *Writer) review(ctx context.Context, resource string, review any) error {
	body, err := json.Marshal(review)
	if err != nil {
		return err
	}
	answer, err := w.request(w.client.Post()).AbsPath("apis", authorizationv1.GroupName, "v1", resource).
		SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(body).
		Timeout(reviewTimeout).
		Do(ctx).Raw()
	if err != nil {
		return err
	}
	if len(answer) > limits.ReviewBytes {
		return fmt.Errorf("the API server answers with %d bytes of rules; the limit is %d", len(answer), limits.ReviewBytes)
	}

	return json.Unmarshal(answer, review)
}
