package objects_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

func TestGroupMessages(t *testing.T) {
	t.Parallel()
	many := make([]objects.Message, 10)
	for i := range many {
		many[i] = objects.Message{Object: fmt.Sprintf("ConfigMap shop/c%d", i), Text: "exists already"}
	}

	for name, tc := range map[string]struct {
		reason   string
		messages []objects.Message
		want     []string
	}{
		"many": {
			reason: "one cause appears once, with three names", messages: many,
			want: []string{"ConfigMap shop/c0, ConfigMap shop/c1, ConfigMap shop/c2 and 7 more: exists already"},
		},
		"requests": {
			reason: "the object is named once, and the cause is the same",
			messages: []objects.Message{
				{Object: "ConfigMap shop/a", Text: `create ConfigMap shop/a: configmaps "a" is forbidden: no quota`},
				{Object: "apps Deployment shop/b", Text: `dry-run apply apps Deployment shop/b: Deployment.apps "b" is forbidden: no quota`},
				{Object: "Deployment shop/b", Text: `dry-run apply apps Deployment shop/b: Deployment.apps "b" is invalid: spec.selector: is immutable`},
			},
			want: []string{"ConfigMap shop/a, apps Deployment shop/b: is forbidden: no quota", "Deployment shop/b: is invalid: spec.selector: is immutable"},
		},
		"namespace": {
			reason: "a missing namespace is named, for any name of the object",
			messages: []objects.Message{
				{Object: "ConfigMap shop/shop", Text: `create ConfigMap shop/shop: namespaces "shop" not found`},
				{Object: "Namespace shop", Text: `apply Namespace shop: namespaces "shop" is forbidden: no`},
			},
			want: []string{`ConfigMap shop/shop: namespaces "shop" not found`, "Namespace shop: is forbidden: no"},
		},
		"others": {
			reason: "a text about something else stays as it is, and so does the order",
			messages: []objects.Message{
				{Object: "ConfigMap shop/a", Text: `secrets "b" is forbidden: x`}, {Object: "Shop a", Text: "condition Ready: is False"},
				{Object: "Secret b", Text: `the webhook "b" says: no`},
			},
			want: []string{`ConfigMap shop/a: secrets "b" is forbidden: x`, "Shop a: condition Ready: is False", `Secret b: the webhook "b" says: no`},
		},
	} {
		var got []string
		for _, group := range objects.GroupMessages(tc.messages) {
			got = append(got, group.String())
		}
		require.Equal(t, tc.want, got, name, ": ", tc.reason)
	}

	long := objects.GroupMessages([]objects.Message{{Object: "ConfigMap shop/a", Text: strings.Repeat("é", 1000)}})[0].String()
	if n := utf8.RuneCountInString(long); n != limits.LineRunes || !strings.HasSuffix(long, "é…") {
		t.Errorf("a long text has %d characters: %s", n, long)
	}
}

func TestKeepField(t *testing.T) {
	t.Parallel()
	for key, deletes := range map[objects.Key]bool{
		{Group: "apps", Kind: "Deployment"}:                       true,
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
		{Kind: "Service"}:                    true,
		{Kind: "Secret"}:                     false,
		{Kind: "Namespace"}:                  false,
		{Kind: "PersistentVolumeClaim"}:      false,
		{Group: "apps", Kind: "StatefulSet"}: false,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: false,
		{Group: "shop.example.com", Kind: "Database"}:                     false,
	} {
		if got := strings.Contains(apinames.Default.KeepField(key), "Recreate"); got != deletes {
			t.Errorf("%s: %s", key, apinames.Default.KeepField(key))
		}
	}
}
