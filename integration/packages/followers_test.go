package packages_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// One new version upgrades all Packages that follow it, and no other; those are not written at all.
func TestFollowers(t *testing.T) {
	t.Parallel()
	followers, others := 20, 5
	if harness.Deep() {
		followers, others = 500, 100
	}
	ns := env.TestNamespace(t)
	one, two := pushNamed(t, "v1"), pushNamed(t, "v2")
	repo := repository(t, ns, "stable", nil)
	repo.offers(t, "shop", version("1.0.0", one))
	repo.offers(t, "other", version("1.0.0", one))
	create := func(called, of, constraint string) {
		pkg := following(ns, of, constraint)
		pkg.Name = called
		env.Create(t, pkg)
	}
	want := map[string]string{}
	for i := range followers {
		name := fmt.Sprintf("follower-%03d", i)
		create(name, "shop", "^1")
		want[name] = "1.1.0"
	}
	for i := range others {
		name, of, constraint := fmt.Sprintf("pinned-%03d", i), "shop", "1.0.0"
		if i%2 == 0 {
			name, of, constraint = fmt.Sprintf("other-%03d", i), "other", ""
		}
		create(name, of, constraint)
		want[name] = "1.0.0"
	}
	patienceOf := patience + time.Duration(followers)*300*time.Millisecond
	ready := func(version func(string) string) func(context.Context) error {
		return func(ctx context.Context) error {
			list := &corev1alpha1.PackageList{}
			if err := env.Client.List(ctx, list, client.InNamespace(ns)); err != nil {
				return err
			}
			for i := range list.Items {
				pkg := &list.Items[i]
				if r := pkg.Status.Resolved; r == nil || r.Version != version(pkg.Name) {
					return fmt.Errorf("%s is %+v", pkg.Name, r)
				}
				if err := harness.HasCondition(pkg, corev1alpha1.ConditionReady, metav1.ConditionTrue, ""); err != nil {
					return fmt.Errorf("%s: %w", pkg.Name, err)
				}
			}
			return nil
		}
	}
	harness.Eventually(t, patienceOf, "all are installed", ready(func(string) string { return "1.0.0" }))
	env.Settle(t, ns)

	from := env.Journal(t)
	repo.offers(t, "shop", version("1.0.0", one), version("1.1.0", two))
	harness.Eventually(t, patienceOf, "all are upgraded", ready(func(name string) string { return want[name] }))
	entries := from.Rest(t, ns)
	for _, e := range entries {
		if e.Object.Name != "" && want[e.Object.Name] == "1.0.0" {
			t.Errorf("%s %s, which does not follow", e.Verb, e.RequestURI)
		}
	}
	counts := harness.Tally(entries)
	if counts["patch objectdeployments"] > followers || counts["update packages/status"] > 4*followers {
		t.Errorf("%d followers are upgraded by %v", followers, counts)
	}
}

// Manifests without a package are installed directly from the repository, with the phases and
// probes of their kinds.
func TestReferenceToPlainManifests(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	repo := repository(t, ns, "stable", nil)
	files := func(v string) corev1alpha1.AvailableVersion {
		return corev1alpha1.AvailableVersion{Version: v, Files: map[string]string{
			"config.yml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {version: " + v + "}\n" +
				"---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: plain}\n",
		}}
	}
	repo.offers(t, "plain.example.com", files("1.0.0"))
	env.Create(t, following(ns, "plain.example.com", ""))
	pkg := awaitVersion(t, ns, "1.0.0")
	if r := pkg.Status.Resolved; r.PackageName != "plain.example.com" || r.Image != "" || r.Digest == "" {
		t.Errorf("resolved %+v", r)
	}
	phases := deployment(t, ns).Spec.Template.Spec.Phases
	if len(phases) != 2 || phases[0].Name != "rbac" || phases[1].Name != "deploy" {
		t.Errorf("phases %+v", phases)
	}
	env.Settle(t, ns)
	unmoved(t, ns, env.Journal(t))
	repo.offers(t, "plain.example.com", files("1.0.0"), files("1.1.0"))
	awaitVersion(t, ns, "1.1.0")
}

// pushNamed pushes a package whose one object has the name of the Package.
func pushNamed(t *testing.T, v string) string {
	t.Helper()
	files := harness.Files{}
	for path, content := range harness.Phased("shop", 1, 1) {
		if named := strings.ReplaceAll(content, "shop-00-000", "{{.package.metadata.name}}"); named != content {
			path, content = path+".gotmpl", strings.ReplaceAll(named, `value: "v1"`, fmt.Sprintf("value: %q", v))
		}
		files[path] = content
	}
	return env.Push(t, strings.ToLower(t.Name())+":"+v, files)
}
