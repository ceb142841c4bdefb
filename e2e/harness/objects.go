package harness

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// Await reads obj again and again until check returns nil.
func Await[T client.Object](tb testing.TB, e *Env, timeout time.Duration, obj T, what string, check func(T) error) T {
	tb.Helper()
	Eventually(tb, timeout, fmt.Sprintf("%T %s %s", obj, obj.GetName(), what), func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		return check(obj)
	})
	return obj
}

// Edit changes an object as a user does.
func Edit[T client.Object](tb testing.TB, e *Env, obj T, change func(T)) T {
	tb.Helper()
	require.NoError(tb, TryEdit(tb, e, obj, change))
	return obj
}

// TryEdit is Edit that returns the API server's answer.
func TryEdit[T client.Object](tb testing.TB, e *Env, obj T, change func(T)) error {
	tb.Helper()
	require.NoError(tb, e.Client.Get(tb.Context(), client.ObjectKeyFromObject(obj), obj))
	before := obj.DeepCopyObject().(client.Object)
	change(obj)
	return e.Client.Patch(tb.Context(), obj, client.MergeFrom(before))
}

// HasCondition returns an error unless an object has the condition for its current generation,
// with texts in the message. An empty reason matches any.
func HasCondition(obj corev1alpha1.Conditioned, typ string, status metav1.ConditionStatus, reason string, texts ...string) error {
	c := meta.FindStatusCondition(*obj.StatusConditions(), typ)
	if c == nil || c.Status != status || reason != "" && c.Reason != reason || c.ObservedGeneration != obj.GetGeneration() {
		return fmt.Errorf("generation %d has no condition %s=%s/%s; the conditions are %+v", obj.GetGeneration(), typ, status, reason, *obj.StatusConditions())
	}
	for _, text := range texts {
		if !strings.Contains(c.Message, text) {
			return fmt.Errorf("the message of condition %s is %q, which lacks %q", typ, c.Message, text)
		}
	}
	return nil
}
