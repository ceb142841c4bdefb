package ui

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/ui/page"
	"lockstep.run/lockstep/test/clustertest"
)

// post sends a form of the page of package shop/web.
func (b *browser) post(action string, form url.Values, header ...string) (int, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+"packages/shop/web/"+action, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := b.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.read(response)
}

var elsewhere = []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}

// The form of a plan moves a package to the version and digest that were shown, and to nothing else.
func TestUpgradeToPlan(t *testing.T) {
	t.Parallel()
	cl := clustertest.FakeCluster(t, clustertest.Following(">=1", "1.0.0"), clustertest.OfferedAs("shop", "1.0.0", "2.0.0"))
	b := serveWith(t, cl, true)
	now := func() string {
		t.Helper()
		pkg := &corev1alpha1.Package{}
		if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, pkg); err != nil {
			t.Fatal(err)
		}
		return pkg.Spec.PackageRef.Version
	}
	right := func() url.Values {
		return url.Values{page.FieldVersion: {"2.0.0"}, page.FieldDigest: {"sha256:" + strings.Repeat("a", 64)}, page.FieldGeneration: {"1"}}
	}
	for name, test := range map[string]struct {
		field, value string
		header       []string
		status       int
		want         string
	}{
		"another digest is offered":         {page.FieldDigest, "sha256:" + strings.Repeat("b", 64), nil, http.StatusBadGateway, "another digest than the plan"},
		"no digest":                         {page.FieldDigest, "", nil, http.StatusBadGateway, "names no version with its digest"},
		"a range":                           {page.FieldVersion, ">=1", nil, http.StatusBadGateway, "another digest than the plan"},
		"a version that is not offered":     {page.FieldVersion, "3.0.0", nil, http.StatusBadGateway, "3.0.0"},
		"the package was changed meanwhile": {page.FieldGeneration, "0", nil, http.StatusBadGateway, "was changed since the plan"},
		"another site":                      {"", "", elsewhere, http.StatusForbidden, "another site"},
	} {
		form := right()
		if test.field != "" {
			form.Set(test.field, test.value)
		}
		if status, text := b.post("upgrade", form, test.header...); status != test.status || !strings.Contains(text, test.want) || now() != ">=1" {
			t.Errorf("%s: %d, version %s: %s", name, status, now(), text)
		}
	}
	if status, _ := serve(t, cl).post("upgrade", right()); status == http.StatusOK || now() != ">=1" {
		t.Errorf("without --allow-changes: %d, version %s", status, now())
	}
	if status, text := b.post("upgrade", right()); status != http.StatusOK || now() != "2.0.0" {
		t.Errorf("the plan: %d, version %s: %s", status, now(), text)
	}
}

// A change of another user between the check of the form and the patch is not overwritten.
func TestUpgradeOfPackageThatChanges(t *testing.T) {
	t.Parallel()
	cl := clustertest.FakeCluster(t, clustertest.Following(">=1", "1.0.0"), clustertest.OfferedAs("shop", "1.0.0", "2.0.0"))
	cl.WithWatch = &overtaking{Listing: clustertest.Listing{WithWatch: cl.WithWatch}, by: func(ctx context.Context) error {
		pkg := &corev1alpha1.Package{}
		if err := cl.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, pkg); err != nil {
			return err
		}
		pkg.Spec.PackageRef.Version = "<2"
		pkg.Generation++
		return cl.Update(ctx, pkg)
	}}
	form := url.Values{page.FieldVersion: {"2.0.0"}, page.FieldDigest: {"sha256:" + strings.Repeat("a", 64)}, page.FieldGeneration: {"1"}}
	status, text := serveWith(t, cl, true).post("upgrade", form)
	pkg := &corev1alpha1.Package{}
	if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, pkg); err != nil {
		t.Fatal(err)
	}
	if status != http.StatusBadGateway || !strings.Contains(text, "was changed since the plan") || pkg.Spec.PackageRef.Version != "<2" {
		t.Errorf("%d, version %s: %s", status, pkg.Spec.PackageRef.Version, text)
	}
}

// overtaking changes something before each patch.
type overtaking struct {
	clustertest.Listing
	by func(context.Context) error
}

// Patch implements client.Writer.
func (o *overtaking) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := o.by(ctx); err != nil {
		return err
	}
	return o.Listing.Patch(ctx, obj, patch, opts...)
}

// The form of a package lets the revision take over that was shown as awaiting that.
func TestActivateShownRevision(t *testing.T) {
	t.Parallel()
	cl := clustertest.FakeCluster(t, waiting()...)
	b := serveWith(t, cl, true)
	now := func() corev1alpha1.ObjectSetLifecycleState {
		t.Helper()
		set := &corev1alpha1.ObjectSet{}
		if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-2"}, set); err != nil {
			t.Fatal(err)
		}
		return set.Spec.LifecycleState
	}
	right := url.Values{page.FieldRevision: {"2"}, page.FieldUID: {"set-2"}}
	for name, test := range map[string]struct {
		form   url.Values
		header []string
		want   string
	}{
		"another revision of this number": {url.Values{page.FieldRevision: {"2"}, page.FieldUID: {"set-other"}}, nil, "is another one than was shown"},
		"no revision":                     {nil, nil, "names no revision"},
		"one that is not there":           {url.Values{page.FieldRevision: {"9"}, page.FieldUID: {"set-2"}}, nil, "has no revision 9"},
		"another site":                    {right, elsewhere, "another site"},
	} {
		if status, text := b.post("activate", test.form, test.header...); status == http.StatusOK || !strings.Contains(text, test.want) || now() == corev1alpha1.ObjectSetLifecycleStateActive {
			t.Errorf("%s: %d, %s: %s", name, status, now(), text)
		}
	}
	if status, text := b.post("activate", right); status != http.StatusOK || now() != corev1alpha1.ObjectSetLifecycleStateActive {
		t.Errorf("%d, %s: %s", status, now(), text)
	}
}

// waiting is a package whose second revision awaits its activation.
func waiting() []client.Object {
	all := clustertest.Revised(func(pkg *corev1alpha1.Package, dep *corev1alpha1.ObjectDeployment) {
		dep.Spec.RevisionActivationPolicy = corev1alpha1.RevisionActivationManual
		dep.Status.CurrentRevision, dep.Status.WaitingRevision = "web-1", "web-2"
		pkg.Status.CurrentRevision, pkg.Status.WaitingRevision = "web-1", "web-2"
	})
	for _, o := range all {
		if set, is := o.(*corev1alpha1.ObjectSet); is && set.Name == "web-2" {
			set.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStatePaused
		}
	}
	return all
}

// A plan has a form only where changes are allowed, and it is feasible; the form is bound to what was shown.
func TestPlanForms(t *testing.T) {
	t.Parallel()
	at := progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "web"}
	version := page.Plan{Target: at, What: "version 2.0.0", Feasible: true, Version: "2.0.0", Digest: "sha256:abc", Generation: 7}
	revision := page.Plan{Target: at, What: "revision 2", Feasible: true, Revision: &page.Revision{Number: 2, UID: "set-2", Awaiting: true}}
	draw := func(changes bool, of page.Plan) string {
		var b strings.Builder
		if err := page.PlanOf(page.Frame{Base: "/b/", Changes: changes}, of).Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, has := range []string{`action="/b/packages/shop/web/upgrade"`, `name="version" value="2.0.0"`, `name="digest" value="sha256:abc"`, `name="generation" value="7"`} {
		if text := draw(true, version); !strings.Contains(text, has) {
			t.Errorf("no %s in %s", has, text)
		}
	}
	if text := draw(true, revision); !strings.Contains(text, `name="uid" value="set-2"`) || !strings.Contains(text, "Activate revision 2") {
		t.Errorf("a revision: %s", text)
	}
	refused, back := version, revision
	refused.Feasible = false
	back.Revision = &page.Revision{Number: 1}
	for _, text := range []string{draw(false, version), draw(false, revision), draw(true, refused), draw(true, back)} {
		if strings.Contains(text, "<form method") {
			t.Errorf("a form that should not be: %s", text)
		}
	}
}
