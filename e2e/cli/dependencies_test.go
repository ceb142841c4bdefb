package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// depending returns a package with values and dependencies, each in the form
// "name: {name: …, version: …}".
func depending(name string, needs ...string) harness.Files {
	spec := "  version: 1.0.0\n  packageName: " + name + ".example.com\n  config:\n    openAPIV3Schema:\n      type: object\n      properties:\n        size: {type: string, default: small}\n"
	if len(needs) > 0 {
		spec += "  dependencies:\n"
	}
	for _, need := range needs {
		dep, what, _ := strings.Cut(need, ": ")
		spec += "  - name: " + dep + "\n    package: " + what + "\n"
	}
	return harness.Files{
		"manifest.yaml": harness.Manifest(name, []string{"deploy"}, spec),
		"settings.yaml.gotmpl": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .package.metadata.name }}\n  annotations: {package-operator.run/phase: deploy}\n" +
			"data:\n  size: {{ .config.size }}\n",
	}
}

// A package is installed with its dependencies. The commands show them, keep them if another
// package needs them, and uninstall them.
func TestDependencies(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	const ns = "dependencies"
	env.Namespace(t, ns)
	run := func(code int, args ...string) string {
		t.Helper()
		return text(t, env, ns, code, args...)
	}

	dir := t.TempDir()
	file, at := filepath.Join(dir, "chain.yaml"), env.Registry()+"/repositories/chain:latest"
	ok(t, env, "repository", "initialize", file)
	images := map[string]string{}
	for name, files := range map[string]harness.Files{
		"front": depending("front", "db: {name: store.example.com, version: ^1}"),
		"store": depending("store", "disk: {name: disk.example.com, version: '>=1'}"),
		"disk":  depending("disk"),
		"mail":  depending("mail", "post: {name: post.example.com, version: ^2}"),
	} {
		images[name] = env.Push(t, "chain-"+name+":1.0.0", files)
		ok(t, env, "repository", "add", file, images[name], "1.0.0")
	}
	ok(t, env, "repository", "push", file, at)
	run(0, "repo", "add", "stable", at)

	values := filepath.Join(dir, "values.yaml")
	require.NoError(t, os.WriteFile(values, []byte("size: large\n"), 0o600))
	env.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"}, Data: map[string]string{"values": "size: huge\n"}})
	has(t, run(1, "install", "front.example.com", "front", "--override", "dbs={package: {version: <2}}"), "front.example.com: version 1.0.0 has no dependency dbs", "Did you mean")
	has(t, run(0, "plan", images["front"], "front"), "+ Package dependencies/front-db-disk  disk.example.com 1.0.0", "+ Package dependencies/front-db  store.example.com 1.0.0",
		"needed by Package dependencies/front → db (")
	has(t, run(0, "plan", "front.example.com", "front", "--values", values), "+ Package dependencies/front-db-disk  disk.example.com 1.0.0", "+ Package dependencies/front-db  store.example.com 1.0.0",
		"+ ConfigMap dependencies/front", "Plan: 1 to create")
	has(t, run(1, "plan", "mail.example.com", "mail"), "✗ post", "would not be rolled out as planned: 1 refusal")
	has(t, run(1, "plan", images["mail"], "mail"), "✗ post", "Refused", "would not be rolled out as planned: 1 refusal")
	has(t, run(0, "install", "front.example.com", "front", "--values", values, "--override", "db={package: {version: <2}, configFrom: [{configMapKeyRef: {name: db, key: values}}]}"),
		"package dependencies/front created", "dependencies are ready", "package dependencies/front is available")
	for name, size := range map[string]string{"front": "large", "front-db": "huge", "front-db-disk": "small"} {
		var live corev1.ConfigMap
		if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &live); err != nil || live.Data["size"] != size {
			t.Errorf("%s: %v %v", name, err, live.Data)
		}
	}
	has(t, run(0, "deps"), "package dependencies/front  front.example.com 1.0.0  available\n└── db: package dependencies/front-db  store.example.com 1.0.0  available  generated  needs ",
		"    └── disk: package dependencies/front-db-disk  disk.example.com 1.0.0  available  generated  needs >=1\n")
	has(t, run(0, "deps", "front-db-disk"), "  package dependencies/front-db (generated) → disk (disk.example.com >=1)")

	// install reports a dependency that is not available, and explain adds a remedy.
	has(t, run(1, "install", "mail.example.com", "mail"), "its dependencies cannot be satisfied", "post.example.com")
	has(t, run(0, "explain", "mail"), "dependencies not satisfied", "Cause  post: ", "post.example.com", "Do     ")
	has(t, run(0, "delete", "mail"), "is deleted")

	// A needed package stays until no package needs it.
	has(t, run(1, "delete", "front-db", "--timeout=5s"), "held: Waiting for its dependents to be deleted: Package dependencies/front")
	harness.Eventually(t, harness.Patience, "the deletion to be held", func(ctx context.Context) error {
		var pkg corev1alpha1.Package
		err := env.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "front-db"}, &pkg)
		for _, cond := range pkg.Status.Conditions {
			if cond.Type == corev1alpha1.ConditionDeletionHeld && cond.Status == "True" {
				return nil
			}
		}
		return errors.Join(err, errors.New("it is not"))
	})
	has(t, run(0, "delete", "front"), "package dependencies/front is deleted")
	harness.Eventually(t, harness.Patience, "the held package to be deleted", func(ctx context.Context) error {
		err := env.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "front-db"}, &corev1alpha1.Package{})
		if err == nil {
			return errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})
	has(t, run(0, "deps", "front-db-disk"), "No package needs it: kubectl package delete package/front-db-disk -n dependencies")
	has(t, run(0, "delete", "front-db-disk"), "is deleted")
}
