package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
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
				require.Equal(t, tc.want, Classify(err), fmt.Sprintf("Classify(%v)", err))
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
	require.Equal(t, 7*time.Second, RetryAfter(fmt.Errorf("x: %w", apierrors.NewTooManyRequests("busy", 7))), "RetryAfter")
	require.Equal(t, time.Duration(0), RetryAfter(errors.New("reset")), "RetryAfter")
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

// TestDeniedBy checks that the origin of a refusal is found, and that quoted names are ignored.
func TestDeniedBy(t *testing.T) {
	t.Parallel()
	const (
		policy = `configmaps "web" is forbidden: ValidatingAdmissionPolicy 'teams' with binding 'teams-shop' denied request: a team is missing`
		hook   = `admission webhook "costs.example.com" denied the request: `
	)
	hooks := &unstructured.Unstructured{Object: map[string]any{"webhooks": []any{"garbage", map[string]any{"name": "costs.example.com"}}}}
	for _, tc := range []struct {
		reason, message, kind, name string
		want                        bool
	}{
		{"the binding", policy, "ValidatingAdmissionPolicyBinding", "teams-shop", true},
		{"another binding", policy, "ValidatingAdmissionPolicyBinding", "teams", false},
		{"the policy", policy, "ValidatingAdmissionPolicy", "teams", true},
		{"another kind", policy, "ValidatingWebhookConfiguration", "teams", false},
		{"the webhook of a configuration", hook + "no", "ValidatingWebhookConfiguration", "any", true},
		{"a mutating one", hook + "no", "MutatingWebhookConfiguration", "any", true},
		{"a policy that a webhook quotes", hook + policy, "ValidatingAdmissionPolicy", "teams", false},
		{"a webhook that a policy quotes", policy + hook, "ValidatingWebhookConfiguration", "any", false},
		{"another webhook", `admission webhook "other.example.com" denied the request: no`, "ValidatingWebhookConfiguration", "any", false},
		{"one that cannot be called", `failed calling webhook "costs.example.com": EOF`, "ValidatingWebhookConfiguration", "any", false},
	} {
		d, _ := DeniedBy(tc.message)
		key := objects.Key{Group: "admissionregistration.k8s.io", Kind: tc.kind, Name: tc.name}
		require.Equal(t, tc.want, d.Is(key, hooks), tc.reason)
		if key.Group = "example.com"; d.Is(key, hooks) {
			t.Errorf("%s: a foreign kind", tc.reason)
		}
	}
}

// TestBriefHasNoValues puts a value into every text where an API server, a webhook or a proxy can
// repeat one.
func TestBriefHasNoValues(t *testing.T) {
	t.Parallel()
	const value = "hunter2"
	status := func(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{Causes: causes},
		}}
	}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"invalid": {"the API server quotes the value", apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", field.ErrorList{
			field.Invalid(field.NewPath("data").Key("b"), value, "must not be "+value),
			field.Invalid(field.NewPath("data").Key("a"), value, "field is immutable"),
		}), "Invalid: data[a], data[b]"},
		"bad request": {"decoders quote input that they cannot decode", apierrors.NewBadRequest("got " + value), "BadRequest"},
		"proxy":       {"a text that is not a Status", errors.New("proxy said " + value), "the API server could not be reached"},
		"not leading": {"our own words", fmt.Errorf("%s: %w", value, leadership.ErrNotLeading), leadership.ErrNotLeading.Error()},
		"too large":   {"our own words", fmt.Errorf("%s: %w", value, ErrResponseTooLarge), ErrResponseTooLarge.Error()},
		"webhook": {
			"message, reason and causes are the webhook's choice",
			status(http.StatusTeapot, value, `admission webhook "policy.example.com" denied the request: no `+value, metav1.StatusCause{Field: "data." + value}),
			`admission webhook "policy.example.com" denied the request; see its log for the reason`,
		},
		"policy": {
			"the message of a policy is an expression on the object",
			status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
				`secrets "a" is forbidden: ValidatingAdmissionPolicy 'no-plain' with binding 'all' denied request: `+value, metav1.StatusCause{Message: value}),
			`Invalid: ValidatingAdmissionPolicy "no-plain" denied the request`,
		},
		"words of a policy in those of another": {
			"a name counts at its place only",
			status(http.StatusForbidden, metav1.StatusReasonForbidden, "no: ValidatingAdmissionPolicy '"+value+"' with binding 'x' denied request"), "Forbidden",
		},
		"quota": {
			"which quota is asked first", status(http.StatusForbidden, metav1.StatusReasonForbidden, `secrets "a" is forbidden: exceeded quota: small, requested: secrets=1`),
			`Forbidden: exceeded quota "small"`,
		},
		"made-up reason":  {"an aggregated API server can answer anything", status(http.StatusConflict, value, value), "Conflict"},
		"made-up code":    {"as above", status(799, value, value), "refused"},
		"an invalid path": {"as above", status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "", metav1.StatusCause{Field: "got " + value}), "Invalid"},
		"typed": {
			"server-side apply quotes the whole object",
			status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "failed to create typed patch object (a; v1, Kind=Secret): expected map, got &{"+value+"}"),
			"InternalError",
		},
		"with its request": {
			"verb and object stay",
			&Error{Verb: "apply", Key: objects.Key{Kind: "Secret", Namespace: "shop", Name: "a"}, Err: apierrors.NewBadRequest(value)},
			"apply Secret shop/a: BadRequest",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{tc.err, fmt.Errorf("%s: %w", value, tc.err)} {
				require.Equal(t, tc.want, Brief(err), tc.reason)
				reduced := fmt.Errorf("create it: %w", Reduced(err))
				if Classify(reduced) != Classify(err) {
					t.Errorf("reduced, it is %s instead of %s", Classify(reduced), Classify(err))
				}
				if text := fmt.Sprintf("%v %+v %q %s", reduced, reduced, reduced, errors.Join(reduced)); strings.Contains(text, value) {
					t.Errorf("the value is in %s", text)
				}
			}
		})
	}
	if Reduced(nil) != nil {
		t.Error("no error became one")
	}
}

func TestAsUnauthorized(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, message, verb string
		code                  int32
	}{
		{"a right", `configmaps "a" is forbidden: User "system:serviceaccount:n:d" cannot patch resource "configmaps" in API group "" in the namespace "n"`, "patch", http.StatusForbidden},
		{"a right without a name", `configmaps is forbidden: User "system:serviceaccount:n:d" cannot create resource "configmaps" in API group "" in the namespace "n"`, "create", http.StatusForbidden},
		{"of a group", `deployments.apps "a" is forbidden: User "u" cannot delete resource "deployments" in API group "apps" in the namespace "n"`, "delete", http.StatusForbidden},
		{"the manager's own", `serviceaccounts "d" is forbidden: User "m" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "n"`, "impersonate", http.StatusForbidden},
		{"the manager's own, constrained", `configmaps is forbidden: User "m" cannot impersonate-on:serviceaccount:create resource "configmaps" in API group "" in the namespace "n"`, "impersonate", http.StatusForbidden},
		{"rights that are granted", "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"u\" (groups=[\"g\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"]}", "escalate", http.StatusForbidden},
		{"a quota", `configmaps "a" is forbidden: exceeded quota: small, requested: configmaps=1`, "", http.StatusForbidden},
		{"a policy that quotes", `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: is forbidden: User "u" cannot patch resource "configmaps"`, "", http.StatusForbidden},
		{"a webhook that quotes", `admission webhook "w" denied the request: x is forbidden: User "u" cannot patch resource "configmaps"`, "", http.StatusForbidden},
		{"another code", `configmaps "a" is forbidden: User "u" cannot patch resource "configmaps"`, "", http.StatusConflict},
	} {
		err := error(&Error{Verb: "apply", Err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: tc.code, Message: tc.message}}})
		got, is := AsUnauthorized(err)
		if got.Verb != tc.verb || is != (tc.verb != "") {
			t.Errorf("%s: %+v, %t", tc.reason, got, is)
		}
	}
	got, _ := AsUnauthorized(&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Message: `deployments.apps "a" is forbidden: User "u" cannot delete resource "deployments" in API group "apps" in the namespace "n"`}})
	require.Equal(t, (Unauthorized{Verb: "delete", Group: "apps", Resource: "deployments", Namespace: "n"}), got)
	if _, is := AsUnauthorized(errors.New("network")); is {
		t.Error("a network error is not a refusal")
	}
}

// Every request of a user's Writer impersonates that user. The original Writer's requests do not.
func TestWriterAs(t *testing.T) {
	t.Parallel()
	var users []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		users = append(users, r.Header.Get("Impersonate-User"))
		if len(r.Header.Values("Impersonate-Group")) > 0 {
			t.Error("the API server adds the groups of service accounts if none are given")
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	writer, err := NewWriter(&rest.Config{Host: server.URL}, apinames.Default.FieldManager)
	require.NoError(t, err)
	m := &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
	ctx := t.Context()
	for _, user := range []string{"system:serviceaccount:n:d", ""} {
		users = nil
		w := writer.As(user)
		_, _ = w.Create(ctx, m, "n", "a", nil, false)
		_, _ = w.Apply(ctx, ApplyRequest{Mapping: m, Namespace: "n", Name: "a"})
		_, _ = w.Apply(ctx, ApplyRequest{Mapping: m, Namespace: "n", Name: "a", DryRun: true})
		_, _ = w.Patch(ctx, m, "n", "a", nil, false)
		_, _ = w.Patch(ctx, m, "n", "a", nil, true)
		_, _ = w.Get(ctx, m, "n", "a")
		_, _, _ = w.Delete(ctx, m, "n", "a", "", "", metav1.DeletePropagationBackground)
		if len(users) != 7 {
			t.Fatalf("%d requests were sent", len(users))
		}
		for i, got := range users {
			if got != user {
				t.Errorf("request %d impersonates %q, want %q", i, got, user)
			}
		}
	}
}

func TestWithoutDumps(t *testing.T) {
	t.Parallel()
	template := `{"labels":{"a":"x: y"},"spec":"` + strings.Repeat("z", 300) + `"}`
	for text, want := range map[string]string{
		"spec.template: Invalid value: " + template + ": field is immutable":                    "spec.template: field is immutable",
		"[a: Invalid value: " + template + ": no, b: Invalid value: " + template + ": neither]": "[a: no, b: neither]",
		`spec.x: Invalid value: "short": must be a DNS label`:                                   `spec.x: Invalid value: "short": must be a DNS label`,
		"spec.x: Invalid value: 7: must be less":                                                "spec.x: Invalid value: 7: must be less",
		"spec.x: Invalid value: " + template:                                                    "spec.x: Invalid value: " + template,
		"spec.x: Invalid value: core.Template{Labels:" + template + "}: field is immutable":     "spec.x: Invalid value: core.Template{Labels:" + template + "}: field is immutable",
		"Invalid value: " + template[:200]:                                                      "Invalid value: " + template[:200],
		"an unrelated message":                                                                  "an unrelated message",
	} {
		require.Equal(t, want, WithoutDumps(text))
	}
}

// TestResponsesAreBounded: an answer of any length takes at most as much memory as the limit, and
// the error names the limit (invariant 9).
func TestResponsesAreBounded(t *testing.T) {
	t.Parallel()
	const most = 2 * limits.ResponseBytes
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"object"},"data":{"value":"`)
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = 'x'
		}
		for ; sent < most && r.Context().Err() == nil; sent += len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `"}}`)
	}))
	writer, err := NewWriter(&rest.Config{Host: server.URL}, apinames.Default.FieldManager)
	require.NoError(t, err)
	mapping := &meta.RESTMapping{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Resource:         schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Scope: meta.RESTScopeNamespace,
	}
	_, err = writer.Get(t.Context(), mapping, "n", "object")
	server.Close() // the server has stopped sending
	if !errors.Is(err, ErrResponseTooLarge) || Classify(err) != Blocked {
		t.Errorf("got %v, want the limit", err)
	}
	if sent >= most {
		t.Errorf("all %d bytes were read", sent)
	}
}
