package objecttemplates_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// The example of docs/object-templates.md works as the page describes.
func TestGuide(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	page, err := os.ReadFile("../../docs/object-templates.md")
	require.NoError(t, err)
	_, example, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ = strings.Cut(example, "```\n")
	for text := range strings.SplitSeq(example, "\n---\n") {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
		u.SetNamespace(ns)
		require.NoError(t, env.Client.Create(t.Context(), u))
	}
	tmpl := &corev1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "connection"}}
	awaitReady(t, tmpl)
	awaitURL := func(want string) {
		t.Helper()
		eventually(t, "the Secret to be rendered", func() error {
			s := &corev1.Secret{}
			if err := env.Client.Get(t.Context(), keyOf(named(ns, "connection")), s); err != nil {
				return err
			}
			return differs(string(s.Data["url"]), want)
		})
	}
	const url = "postgres://app:hunter2@db.example.com:5432"
	if !strings.Contains(string(page), "`"+url+"`") {
		t.Error("the page shows another result")
	}
	awaitURL(url)
	configMap(t, ns, "overrides", map[string]string{"user": "admin"})
	awaitURL(strings.Replace(url, "app", "admin", 1))
}
