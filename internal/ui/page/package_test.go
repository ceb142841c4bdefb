package page_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/internal/ui/page"
	"lockstep.run/lockstep/test/require"
)

// set returns the newest revision of a package, with these objects in its phases.
func set(p corev1alpha1.GenericPackage, objects map[string][]string) corev1alpha1.GenericObjectSet {
	s := corev1alpha1.ScopeOf(p.GetNamespace()).NewObjectSet()
	s.SetNamespace(p.GetNamespace())
	s.SetName(p.GetName() + "-1")
	s.ObjectSetSpec().Revision = p.PackageStatus().Revision
	s.ObjectSetStatus().Phases, s.ObjectSetStatus().Blocking = p.PackageStatus().Phases, p.PackageStatus().Blocking
	for _, ph := range p.PackageStatus().Phases {
		phase := corev1alpha1.ObjectSetTemplatePhase{Name: ph.Name}
		for _, o := range objects[ph.Name] {
			apiVersion, rest, _ := strings.Cut(o, " ")
			kind, name, _ := strings.Cut(rest, " ")
			raw, _ := json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}})
			phase.Objects = append(phase.Objects, corev1alpha1.ObjectSetObject{Object: runtime.RawExtension{Raw: raw}})
		}
		s.ObjectSetSpec().Phases = append(s.ObjectSetSpec().Phases, phase)
	}
	return s
}

func observed(p corev1alpha1.GenericPackage, s corev1alpha1.GenericObjectSet) page.Observed {
	t := progress.TargetOf(p)
	snap := progress.Snapshot{Target: t, Package: p, Set: s}
	o := page.Observed{State: progress.Of(snap), Report: progress.ReportOf(snap), Dependencies: graph.Of([]corev1alpha1.GenericPackage{p}).Node(graph.KeyOf(p)).Dependencies}
	for i := p.PackageStatus().Revision; i > 0 && i > p.PackageStatus().Revision-4; i-- {
		o.Revisions = append(o.Revisions, page.Revision{
			Number: i, Version: fmt.Sprintf("%d.0.0", i), Image: fmt.Sprintf("registry.example.com/%s:v%d.0.0", p.GetName(), i), Cause: "The image changed.",
			InCharge: i == p.PackageStatus().Revision, Succeeded: i < p.PackageStatus().Revision, Archived: i+1 < p.PackageStatus().Revision,
			Created: metav1.NewTime(now.Add(-time.Duration(p.PackageStatus().Revision-i)*71*time.Hour - 11*time.Minute)),
		})
	}
	return o
}

func objectsOf(name string) map[string][]string {
	return map[string][]string{
		"namespace": {"v1 Namespace " + name, "v1 ServiceAccount " + name, "rbac.authorization.k8s.io/v1 Role " + name},
		"crds":      {"apiextensions.k8s.io/v1 CustomResourceDefinition ledgers.payments.example.com"},
		"deploy":    {"v1 ConfigMap " + name, "v1 Secret " + name, "apps/v1 Deployment " + name, "v1 Service " + name, "policy/v1 PodDisruptionBudget " + name},
		"publish":   {"networking.k8s.io/v1 Ingress " + name},
	}
}

func brokenUpgrade() page.Observed {
	var p corev1alpha1.GenericPackage
	for _, one := range shop() {
		if one.GetName() == "api" {
			p = one
		}
	}
	o := observed(p, set(p, objectsOf("payments-api")))
	o.Cause = &diagnose.Diagnosis{
		Kind: "Package", Namespace: "payments", Name: "api", Summary: summary.Stalled, Phase: "deploy", Object: "Pod payments-api-7d9c5b6f4-x2x8k", Reason: diagnose.ReasonCrash,
		Cause:  "container api of Pod payments-api-7d9c5b6f4-x2x8k ends again and again with exit code 1: database migration 42 has not run",
		Remedy: "See its log: kubectl -n payments logs payments-api-7d9c5b6f4-x2x8k -c api --previous. Correct it in the package, or go back: kubectl package rollout undo package/api -n payments",
		Chain: []diagnose.Link{
			{Object: "Package payments/api", State: "Stalled"}, {Depth: 1, Object: "ObjectDeployment payments/api", State: "Available=True Available"},
			{Depth: 2, Object: "ObjectSet payments/api-6c8f", State: "revision 8", Message: "ProbeFailure"}, {Depth: 3, Object: "phase deploy", State: "Probing, 1 of 3 ready"},
			{Depth: 4, Object: "Deployment payments-api", Message: "0 of 3 replicas are updated and available"}, {Depth: 5, Object: "Pod payments-api-7d9c5b6f4-x2x8k", State: "CrashLoopBackOff", Message: "exit code 1"},
		},
	}
	return o
}

func TestPackageGolden(t *testing.T) {
	t.Parallel()
	compare(t, "broken", page.PackageOf(frame(), brokenUpgrade()))
	for _, p := range shop() {
		switch p.GetName() {
		case "web":
			compare(t, "rolling", page.PackageOf(frame(), observed(p, set(p, objectsOf("shop-web")))))
		case "postgres-operator":
			compare(t, "available", page.PackageOf(frame(), observed(p, set(p, objectsOf("shop-web")))))
		}
	}
	compare(t, "diff", page.DiffOf(frame(), progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "payments", Name: "api"}, objectdiff.Comparison{
		From: 7, To: 8, Phases: &objectdiff.OrderChange{Before: []string{"namespace", "deploy"}, After: []string{"namespace", "crds", "deploy", "publish"}},
		Objects: []objectdiff.Difference{
			{Action: objectdiff.Added, ID: objectdiff.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "ledgers.payments.example.com"}, Phase: "crds"},
			{Action: objectdiff.Changed, ID: objectdiff.ID{Group: "apps", Kind: "Deployment", Namespace: "payments", Name: "payments-api"}, Phase: "deploy", Fields: []objectdiff.Change{
				{Path: "spec.replicas", Before: int64(2), After: int64(3)},
				{Path: "spec.template.spec.containers[name=api].image", Before: "registry.example.com/api-server:3.9.0", After: "registry.example.com/api-server:4.0.0"},
				{Path: "spec.template.spec.containers[name=api].env[name=TRACING]", After: map[string]any{"name": "TRACING", "value": "on"}},
			}},
			{Action: objectdiff.Changed, ID: objectdiff.ID{Kind: "Secret", Namespace: "payments", Name: "payments-api"}, Phase: "deploy", Fields: []objectdiff.Change{{Path: "data.token", Before: objectdiff.Hidden, After: objectdiff.Hidden}}},
			{Action: objectdiff.Removed, ID: objectdiff.ID{Kind: "ConfigMap", Namespace: "payments", Name: "legacy"}, Phase: "deploy"},
		},
	}))
}

// A revision that awaits its activation is not rolled out. The page shows how to preview and
// activate it.
func TestAwaitingActivation(t *testing.T) {
	t.Parallel()
	p := pkg("shop", "web", "1.0.0", condition(corev1alpha1.ConditionAwaitingActivation, "True", "Manual", "Revision 4 awaits its activation: kubectl package rollout activate package/web -n shop"))
	p.PackageStatus().CurrentVersion = "0.9.0"
	require.Contains(t, page.RowOf(p).Waits, "Revision 4 awaits its activation", "the list has")
	require.Equal(t, "0.9.0", page.RowOf(p).Version)
	o := observed(p, nil)
	o.Revisions = append([]page.Revision{{Number: 4, Awaiting: true}}, o.Revisions...)
	got := text(t, page.PackageOf(frame(), o))
	for _, want := range []string{"awaits its activation", "kubectl package rollout activate package/web -n shop", "kubectl package rollout diff package/web -n shop", "in charge"} {
		require.Contains(t, got, want)
	}
}

// The size of a package's page is limited for any package. It includes the blocking objects.
func TestManyObjects(t *testing.T) {
	t.Parallel()
	p := pkg("shop", "large", "1.0.0", rolling)
	objects := make([]string, 20_000)
	for i := range objects {
		objects[i] = fmt.Sprintf("v1 ConfigMap object-%05d", i)
	}
	objects[19_999] = "apps/v1 Deployment shop-web"
	p.PackageStatus().Phases[2].Total = 20_000
	begin := time.Now()
	o := observed(p, set(p, map[string][]string{"deploy": objects}))
	state := time.Since(begin)
	got := text(t, page.PackageOf(frame(), o))
	t.Logf("20,000 objects: %d bytes in %s, including %s for the state", len(got), time.Since(begin), state)
	if len(got) > 256<<10 || strings.Count(got, `class="o"`) != page.PhaseObjects {
		t.Errorf("%d bytes, %d objects", len(got), strings.Count(got, `class="o"`))
	}
	if !strings.Contains(got, "and 19900 more") || !strings.Contains(got, "1 of 3 replicas are available") {
		t.Error("what blocks is not shown")
	}
}

const (
	markup   = `<img src=x onerror=alert(1)>"'><script>alert(2)</script>`
	reversed = "\u202egpj.exe\u200b"
	planted  = "planted-value"
)

// hostile returns a package, webhook and Event whose texts are all attacks.
func hostile() (corev1alpha1.GenericPackage, page.Observed) {
	bad := markup + reversed + strings.Repeat("x", 32<<10)
	p := pkg("shop", "evil", "1.0.0", broken, blocking(bad, bad, bad, bad, bad), dependsOn(bad, "shop", bad, bad, false), condition(bad, metav1.ConditionStatus(bad), bad, bad),
		condition("Unpacked", "True", "UnpackSuccess", "ok\n"+bad), condition("Stalled", "True", "Stalled", bad))
	p.SetAnnotations(map[string]string{corev1alpha1.PauseMessageAnnotation: bad, "password": planted})
	p.SetFinalizers([]string{bad})
	p.PackageSpec().Image, p.PackageSpec().Component, p.PackageSpec().ServiceAccountName = bad, bad, bad
	status := p.PackageStatus()
	status.Resolved = &corev1alpha1.ResolvedPackage{
		PackageName: bad, Version: bad, Image: bad, Digest: bad, Repository: bad, CatalogName: bad, Images: []corev1alpha1.PackageImage{{Name: bad, Image: bad, Digest: bad}},
	}
	status.Phases[0].Name, status.Phases[0].State = bad, corev1alpha1.PhaseState(bad)
	status.Dependencies[0].Conditions[0].Reason = bad
	o := observed(p, set(p, map[string][]string{"deploy": {bad + "/v1 " + bad + " " + bad}}))
	o.Account, o.Note, o.CauseNote = bad, bad, bad
	o.Revisions = append(o.Revisions, page.Revision{Version: bad, Image: bad, Cause: bad})
	o.Cause = &diagnose.Diagnosis{Cause: bad, Remedy: bad, Object: bad, Chain: []diagnose.Link{{Object: bad, State: bad, Message: bad, Depth: 99}}}
	return p, o
}

// The icon of a package is an address that no browser runs, for any content, and its size is
// limited.
func TestIcon(t *testing.T) {
	t.Parallel()
	_, o := hostile()
	o.Icon = page.Icon([]byte(`"><script>alert(1)</script>`))
	const want = `<img class="logo" src="data:image/svg&#43;xml;base64,Ij48c2NyaXB0PmFsZXJ0KDEpPC9zY3JpcHQ&#43;" alt="">`
	require.Contains(t, text(t, page.PackageOf(frame(), o)), want, "the page")
	require.Equal(t, "", string(page.Icon(nil)), "a package without an icon")
}

// No text of a cluster adds markup, scripts or a reversed direction to any page, or makes it large.
// No page has a configuration.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	p, o := hostile()
	bad := o.Note
	f := frame(bad)
	f.Cluster = bad
	target := o.State.Target
	value := map[string]any{bad: bad}
	for name, drawn := range map[string]*page.Page{
		"list":    page.ListOf(f, []page.Row{page.RowOf(p)}, page.Query{Text: "", Namespace: ""}),
		"filter":  page.ListOf(f, []page.Row{page.RowOf(p)}, page.Query{Text: markup, State: markup, Namespace: markup, Page: -1}),
		"package": page.PackageOf(f, o),
		"failed":  page.Failed(f, bad, bad),
		"diff": page.DiffOf(f, target, objectdiff.Comparison{
			Phases: &objectdiff.OrderChange{Before: []string{bad}, After: []string{bad}},
			Objects: []objectdiff.Difference{{
				Action: objectdiff.Changed, ID: objectdiff.ID{Group: bad, Kind: bad, Namespace: bad, Name: bad}, Phase: bad, PhaseBefore: bad,
				Fields: []objectdiff.Change{{Path: bad, Before: value, After: bad}},
			}},
		}),
	} {
		got := text(t, drawn)
		for _, no := range []string{"<img", "<script>", "alert(1)>\"", "\u202e", "\u200b", planted, "javascript:"} {
			if i := strings.Index(got, no); i >= 0 {
				t.Errorf("%s has %q: %s", name, no, got[max(i-200, 0):min(i+100, len(got))])
			}
		}
		if len(got) > 512<<10 {
			t.Errorf("%s has %d bytes", name, len(got))
		}
	}
}

func TestListGolden(t *testing.T) {
	t.Parallel()
	compare(t, "list", page.ListOf(frame(), rows(shop()), page.Query{}))
	compare(t, "list-empty", page.ListOf(frame("You may not watch clusterpackages: they are not shown."), nil, page.Query{}))
}

// Broken packages are first, and the filter in the address selects by text, state and namespace.
// The counts ignore the state in the filter.
func TestListFilter(t *testing.T) {
	t.Parallel()
	all := rows(shop())
	names := func(q page.Query) []string {
		var found []string
		for _, part := range strings.Split(text(t, page.ListOf(frame(), all, q)), `data-key="`)[1:] {
			name, _, _ := strings.Cut(part, `"`)
			found = append(found, name)
		}
		return found
	}
	if got := names(page.Query{}); len(got) != len(all) || got[0] != "package payments/api" || got[1] != "package payments/fraud" {
		t.Errorf("all: %q", got)
	}
	for name, test := range map[string]struct {
		query page.Query
		want  []string
	}{
		"text":      {page.Query{Text: "LEDGER"}, []string{"package payments/ledger-db"}},
		"version":   {page.Query{Text: "3.2.1"}, []string{"clusterpackage observability"}},
		"state":     {page.Query{State: "Stalled"}, []string{"package payments/api"}},
		"tone":      {page.Query{State: "bad"}, []string{"package payments/api", "package payments/fraud"}},
		"namespace": {page.Query{Namespace: "shop", State: "Available"}, []string{"package shop/orders-db"}},
		"cluster":   {page.Query{Namespace: "(cluster)", Text: "ingress"}, []string{"clusterpackage ingress"}},
		"nothing":   {page.Query{Text: "<script>"}, nil},
	} {
		if got := names(test.query); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	require.Contains(t, text(t, page.ListOf(frame(), all, page.Query{State: "Stalled"})), `<span class="n">12</span>`, "the counts are those of one state")
}

// Each state has a shape for its tone and a word, so that colour alone never distinguishes states.
func TestStatesHaveShapes(t *testing.T) {
	t.Parallel()
	document := text(t, page.ListOf(frame(), nil, page.Query{}))
	for _, s := range summary.All() {
		got := text(t, page.ListOf(frame(), []page.Row{{Target: progress.Target{Name: "x"}, Summary: s}}, page.Query{}))
		_, shape, found := strings.Cut(got, `<td class="state"><span class="`)
		tone, _, _ := strings.Cut(shape, `"`)
		if !found || !strings.Contains(shape, `<use href="#i-`+tone+`"></use></svg><span>`+s.Words()+`</span>`) || !strings.Contains(document, `<symbol id="i-`+tone+`"`) {
			t.Errorf("%s: %q", s, tone)
		}
		require.Equal(t, (tone == "bad"), s.Urgency() < summary.Deleting.Urgency(), fmt.Sprintf("%s is %s", s, tone))
	}
}

// The size of a list page is limited for any number of packages. Pages link to each other, and a
// page number that is too high leads to the last one.
func TestListIsPaged(t *testing.T) {
	t.Parallel()
	all := rows(many(5000))
	begin := time.Now()
	first := text(t, page.ListOf(frame(), all, page.Query{}))
	t.Logf("5,000 packages: %d bytes in %s", len(first), time.Since(begin))
	if n := strings.Count(first, "data-key="); n != page.ListRows || len(first) > 256<<10 {
		t.Errorf("%d rows, %d bytes", n, len(first))
	}
	if !strings.Contains(first, "1–100 of 5000") || !strings.Contains(first, `href="/base/packages?page=2"`) || strings.Contains(first, "Before</a>") {
		t.Error("the first page does not lead to the second")
	}
	last := text(t, page.ListOf(frame(), all, page.Query{Page: 1000, Text: "service"}))
	if !strings.Contains(last, "4901–5000 of 5000") || !strings.Contains(last, `href="/base/packages?page=49&amp;q=service"`) || strings.Contains(last, "Further") {
		t.Error("the last page is another one")
	}
}

// A fragment is only sent again if it changes.
func TestChangedFragments(t *testing.T) {
	t.Parallel()
	before := page.ListOf(frame(), rows(shop()), page.Query{})
	known := map[string]string{}
	for id, f := range before.Fragments {
		known[id] = f.Digest
	}
	if again, err := page.ListOf(frame(), rows(shop()), page.Query{}).Changed(known); err != nil || len(again) > 0 {
		t.Errorf("without a change: %v, %v", again, err)
	}
	packages := shop()
	packages[0] = pkg("", "cert-operator", "1.15.3")
	changed, err := page.ListOf(frame(), rows(packages), page.Query{}).Changed(known)
	if err != nil || len(changed) != 1 || changed[0].ID != "rows" || !strings.Contains(string(changed[0].HTML), "1.15.3") {
		t.Errorf("with another version: %v, %v", changed, err)
	}
	changed, err = page.ListOf(frame("The connection is lost."), rows(shop()), page.Query{}).Changed(known)
	if err != nil || len(changed) != 1 || changed[0].ID != "notes" {
		t.Errorf("with a note: %v, %v", changed, err)
	}
}
