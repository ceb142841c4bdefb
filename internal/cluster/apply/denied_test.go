package apply

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

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
	if want := (Unauthorized{Verb: "delete", Group: "apps", Resource: "deployments", Namespace: "n"}); got != want {
		t.Errorf("got %+v", got)
	}
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
