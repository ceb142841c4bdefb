package objecttemplates_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

func restart(t *testing.T) {
	t.Helper()
	manager.Stop()
	manager = start()
}

// A restart after everything converged makes no writes. Changes that were made meanwhile are
// applied, including the removal of a source's field.
func TestRestart(t *testing.T) {
	ns := env.TestNamespace(t)
	from := configMap(t, ns, "from", map[string]string{"v": "a", "more": "b"})
	text := `{apiVersion: v1, kind: ConfigMap, metadata: {name: out}, data: {value: "{{ .config.v }}"{{ with get .config "more" }}, more: "{{ . }}"{{ end }}}}`
	tmpl := template(t, ns, "t", text, source("v1", "ConfigMap", "from", "data.v=.v", `jq:.data.more // ""=.more`))
	renamed, drifts := template(t, ns, "renamed", rendering("one", `"v"`)), template(t, ns, "drifts", rendering("drifts", `"v"`))
	for _, one := range []*corev1alpha1.ObjectTemplate{tmpl, renamed, drifts} {
		awaitReady(t, one)
	}
	env.Journal(t).Rest(t, ns)

	journal := env.Journal(t)
	restart(t)
	requests := slices.DeleteFunc(journal.Rest(t, ns), func(e sandbox.Entry) bool { return e.Verb == "list" || e.Verb == "get" })
	if len(requests) > 0 {
		t.Errorf("a restart wrote:%s", harness.Lines(requests))
	}

	manager.Stop()
	change(t, from, func(o *corev1.ConfigMap) { delete(o.Data, "more") })
	change(t, renamed, func(o *corev1alpha1.ObjectTemplate) { o.Spec.Template = rendering("two", `"v"`) })
	change(t, named(ns, "drifts"), func(o *corev1.ConfigMap) { o.Data["value"] = "drift" })
	manager = start()
	awaitGone(t, named(ns, "one"))
	awaitValue(t, ns, "two", "v")
	awaitValue(t, ns, "drifts", "v")
	eventually(t, "the field to be removed", func() error { return differs(awaitValue(t, ns, "out", "a").Data["more"], "") })
}
