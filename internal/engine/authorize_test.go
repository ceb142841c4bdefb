package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/memory"
	"lockstep.run/lockstep/test/require"
)

// authorizer answers for one account, and counts the questions.
type authorizer struct {
	mu sync.Mutex
	// rules by namespace; "-" for the whole cluster. incomplete means that others allow more, which
	// allowed decides.
	rules      map[string][]rbacv1.PolicyRule
	incomplete bool
	allowed    func(authorizationv1.ResourceAttributes) bool
	fails      error
	lists, ask int
}

func (a *authorizer) Rules(_ context.Context, namespace string) ([]rbacv1.PolicyRule, bool, error) {
	a.lists++
	return append(a.rules["-"], a.rules[namespace]...), !a.incomplete, a.fails
}

func (a *authorizer) Allowed(_ context.Context, access authorizationv1.SelfSubjectAccessReviewSpec) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ask++
	return a.allowed != nil && a.allowed(*access.ResourceAttributes), nil
}

// silent does not print its records.
type silent struct{ notes }

func (silent) Claimed(context.Context, *engine.Revision) error { return nil }

func verbs(group, resource string, all ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: all}
}

// Rights are proven before anything is claimed, with as few questions as possible and never more
// than limits.Reviews. If they cannot be found out, the rollout continues.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	clusterRoles := schema.GroupVersionKind{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole"}
	all := verbs("", "configmaps", "create", "patch", "delete")
	config := func(namespaces ...string) (out []*objects.Desired) {
		for i, namespace := range namespaces {
			d := desired(configMaps, fmt.Sprintf("c%d", i))
			d.Key.Namespace = namespace
			out = append(out, d)
		}
		return out
	}
	kept := config("shop")
	kept[0].Keep = true
	many := make([]string, 400)
	for i := range many {
		many[i] = fmt.Sprintf("n%03d", i)
	}
	in := func(namespace string, n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = namespace
		}
		return out
	}
	clusterRole := desired(clusterRoles, "cr")
	clusterRole.Key.Namespace = ""
	clusterRole.Raw = []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"cr"}}`)
	for name, tc := range map[string]struct {
		objects    []*objects.Desired
		rights     *authorizer
		lists, ask int
		want       string // of the message; empty if the revision is claimed
	}{
		"held": {objects: config("shop"), rights: &authorizer{rules: map[string][]rbacv1.PolicyRule{"shop": {all}}}, lists: 1},
		"without one verb": {
			objects: config("shop"), rights: &authorizer{rules: map[string][]rbacv1.PolicyRule{"shop": {verbs("", "configmaps", "create", "patch")}}}, lists: 1,
			want: "ServiceAccount shop/deployer lacks rights, and no objects are written without all of them (grant them): in namespace shop: delete configmaps (c0)",
		},
		"an object that is kept is never deleted": {
			objects: kept, rights: &authorizer{rules: map[string][]rbacv1.PolicyRule{"shop": {verbs("", "configmaps", "create", "patch")}}}, lists: 1,
		},
		"two namespaces, by the cluster's": {objects: config("a", "b"), rights: &authorizer{rules: map[string][]rbacv1.PolicyRule{"-": {all}}}, lists: 1},
		"two namespaces, by their own":     {objects: config("a", "b"), rights: &authorizer{rules: map[string][]rbacv1.PolicyRule{"a": {all}, "b": {all}}}, lists: 3},
		"one of two namespaces": {
			objects: config("a", "b"), rights: &authorizer{rules: map[string][]rbacv1.PolicyRule{"a": {all}}}, lists: 3,
			want: "in namespace b: create configmaps; patch, delete configmaps (c1)",
		},
		"more namespaces than are requested": {objects: config(many...), rights: &authorizer{}, lists: limits.Reviews, want: "in namespace n000: create"},
		"a kind of the cluster": {
			objects: []*objects.Desired{clusterRole}, lists: 1, rights: &authorizer{rules: map[string][]rbacv1.PolicyRule{"shop": {verbs("*", "*", "*")}}},
			want: "in the whole cluster: create clusterroles.rbac.authorization.k8s.io; patch, delete clusterroles.rbac.authorization.k8s.io (cr)",
		},
		"another authorizer allows the rest": {
			objects: config("shop", "shop"), lists: 1, ask: 3, rights: &authorizer{incomplete: true, allowed: func(authorizationv1.ResourceAttributes) bool { return true }},
		},
		"another authorizer allows it by name": {
			objects: config("shop", "shop"), lists: 1, ask: 3 + 4, rights: &authorizer{incomplete: true, allowed: func(a authorizationv1.ResourceAttributes) bool { return a.Verb == "create" || a.Name != "" }},
		},
		"another authorizer denies one": {
			objects: config("shop", "shop"), lists: 1, ask: 3 + 4, want: "in namespace shop: delete configmaps (c1)",
			rights: &authorizer{incomplete: true, allowed: func(a authorizationv1.ResourceAttributes) bool {
				return a.Verb == "create" || a.Name == "c0" || a.Name != "" && a.Verb == "patch"
			}},
		},
		"another authorizer, more than are requested": {
			objects: config(in("shop", 400)...), lists: 1, ask: limits.Reviews - 1,
			rights: &authorizer{incomplete: true, allowed: func(a authorizationv1.ResourceAttributes) bool { return a.Verb == "create" || a.Name != "" }},
		},
		"the question fails": {objects: config("shop"), lists: 1, rights: &authorizer{fails: errors.New("the server could not answer in time")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			server := memory.NewServer(apinames.Default, func() time.Time { return now }, memory.Kind{GroupVersionKind: configMaps},
				memory.Kind{GroupVersionKind: clusterRoles, ClusterScoped: true})
			tracker, here := tracking.New(apinames.Default), server.Connect()
			here.Observe, here.Changed, here.KindChanged = tracker.Observe, tracker.Changed, tracker.KindChanged
			here.Send = func(_ context.Context, r memory.Request, do func() error) error {
				if tc.want != "" && r.Writes() {
					t.Errorf("%s was sent", r)
				}
				return do()
			}
			tracker.Wake = func(objects.OwnerKey) {}
			e := &engine.Engine{Cluster: here, Tracker: tracker, Pool: engine.NewPool(1, 1), Rights: func(objects.Account) engine.Rights { return tc.rights }}
			rev := engine.NewRevision()
			rev.Identify("shop", "shop-1", "")
			rev.Account = objects.Account{Namespace: "shop", Name: "deployer"}
			rev.Metadata = objects.ManagedMetadata{Owner: shop}
			rev.Phases = []phases.Phase{{Name: "a", Objects: tc.objects}}
			rev.SetProbes(&probes.Set{})
			owner := engine.New(shop)
			owner.Claims = claims.NewTable(func(objects.Owner) {})
			owner.Put(rev)
			step := func() engine.Outcome {
				t.Helper()
				defer owner.Start(func() time.Time { return now }, time.Second)()
				out, err := e.Step(t.Context(), owner, engine.Want{Current: rev.UID, Store: silent{}})
				require.NoError(t, err)
				return out
			}
			out := step()
			if tc.rights.lists != tc.lists || tc.rights.ask != tc.ask {
				t.Errorf("%d lists and %d questions, want %d and %d", tc.rights.lists, tc.rights.ask, tc.lists, tc.ask)
			}
			if tc.want == "" {
				if rev.Unauthorized != nil || !rev.Claimed() && !rev.Refused() {
					t.Errorf("not claimed: %+v", rev.Unauthorized)
				}
				return
			}
			if rev.Claimed() || rev.Unauthorized == nil || !strings.Contains(rev.Unauthorized.Message, tc.want) {
				t.Fatalf("%+v, want %q", rev.Unauthorized, tc.want)
			}
			if _, held := owner.Claims.Holder(tc.objects[0].Key); held {
				t.Error("it is claimed")
			}
			pause := out.RequeueAt.Sub(now)
			if step(); tc.rights.lists != tc.lists {
				t.Error("the account is looked at again at once")
			}
			for range 20 {
				now = out.RequeueAt
				if out = step(); out.RequeueAt.Sub(now) < pause || out.RequeueAt.Sub(now) > 5*time.Minute {
					t.Fatalf("after a pause of %v one of %v", pause, out.RequeueAt.Sub(now))
				}
				pause = out.RequeueAt.Sub(now)
			}
			tc.rights.rules = map[string][]rbacv1.PolicyRule{"-": {verbs("*", "*", "*")}}
			owner.Retry()
			if step(); rev.Unauthorized != nil || !rev.Claimed() && !rev.Refused() {
				t.Errorf("it stays so: %+v", rev.Unauthorized)
			}
		})
	}
}
