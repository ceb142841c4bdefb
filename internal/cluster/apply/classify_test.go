package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/test/require"
)

// integration/livestate tests the answers of a real API server. These answers need a fault or
// another server.
func TestClassify(t *testing.T) {
	t.Parallel()
	configMaps := schema.GroupResource{Resource: "configmaps"}
	status := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
	}
	sent := func(verb string, err error) error { return &Error{Verb: verb, Resource: "configmaps", Err: err} }

	for name, tc := range map[string]struct {
		err  error
		want Class
	}{
		"nothing":           {nil, OK},
		"not leading":       {fmt.Errorf("patch: %w", leadership.ErrNotLeading), NotLeading},
		"network":           {errors.New("connection reset by peer"), Retry},
		"deadline":          {context.DeadlineExceeded, Retry},
		"too many requests": {apierrors.NewTooManyRequests("busy", 7), Retry},
		"server timeout":    {apierrors.NewServerTimeout(configMaps, "patch", 1), Retry},
		"unavailable":       {apierrors.NewServiceUnavailable("starting"), Retry},
		"unauthorized":      {apierrors.NewUnauthorized("expired"), Retry},
		"already exists":    {apierrors.NewAlreadyExists(configMaps, "a"), Conflict},
		"a quota was written meanwhile": {
			sent("apply", apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("modified"))), Retry,
		},
		"denied by a webhook with a code of its choice": {
			status(http.StatusConflict, "", `admission webhook "a.b.c" denied the request: no`), Blocked,
		},
		"denied by a webhook as internal error": {
			status(http.StatusInternalServerError, metav1.StatusReasonInternalError, `admission webhook "a.b.c" denied the request: no`), Blocked,
		},
		"a webhook that fails": {
			status(http.StatusInternalServerError, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "a.b.c": EOF`), Retry,
		},
		"quota exceeded":                  {apierrors.NewForbidden(configMaps, "a", errors.New("exceeded quota: q")), Blocked},
		"not acceptable media type":       {status(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "no apply"), Blocked},
		"too large for etcd":              {status(http.StatusInternalServerError, "", "etcdserver: request is too large"), Blocked},
		"a gateway's 404 page":            {apierrors.NewGenericServerResponse(404, "PATCH", schema.GroupResource{}, "", "404 page not found", 0, true), NotServed},
		"invalid in a field":              {apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", field.ErrorList{field.Required(field.NewPath("data"), "")}), Blocked},
		"a patch of an unreadable object": {sent("dry-run patch", apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), "{}", "illegal base64")})), Blocked},
		"replaced":                        {apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "u", "")}), Replaced},
		"a JSON patch that is not apply":  {sent("patch", status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "")), Conflict},
		"too large for the reader":        {fmt.Errorf("read: %w", ErrResponseTooLarge), Blocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{tc.err, sent2(tc.err)} {
				if got := Classify(err); got != tc.want {
					t.Errorf("Classify(%v) = %v, want %v", err, got, tc.want)
				}
			}
		})
	}
}

// sent2 wraps the error once more, as callers do.
func sent2(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("phase a: %w", err)
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	if got := RetryAfter(fmt.Errorf("x: %w", apierrors.NewTooManyRequests("busy", 7))); got != 7*time.Second {
		t.Errorf("RetryAfter = %v, want 7s", got)
	}
	if got := RetryAfter(errors.New("reset")); got != 0 {
		t.Errorf("RetryAfter = %v, want 0", got)
	}
}

func TestCausesOf(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", field.ErrorList{
		field.Invalid(field.NewPath("data").Key("b"), "hunter2", "must not be hunter2"),
		field.Invalid(field.NewPath("data").Key("b"), "hunter2", "must be longer"),
		field.Invalid(field.NewPath("data").Key("a"), "hunter2", "field is immutable"),
	})
	require.Equal(t, []string{"data[b]", "data[a]"}, CausesOf(fmt.Errorf("x: %w", invalid)), "CausesOf")
	if got := CausesOf(errors.New("reset")); got != nil {
		t.Errorf("CausesOf = %v, want nil", got)
	}
}
