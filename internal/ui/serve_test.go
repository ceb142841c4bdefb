package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/ui/page"
	"lockstep.run/lockstep/internal/ui/watches"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

// browser is signed in at a served page.
type browser struct {
	*http.Client
	t    *testing.T
	base string
}

// most limits the bytes that the page sends at a time.
const most = 16 << 20

// serve serves a page of a cluster, and signs a browser in.
func serve(t *testing.T, cl *cluster.Cluster) *browser {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host := listener.Addr().String()
	s := newServer(t.Context(), cl, host)
	var served sync.WaitGroup
	served.Go(func() {
		if err := s.serve(listener); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(served.Wait) // the context of the test has ended by then
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b := &browser{Client: &http.Client{Jar: jar}, t: t, base: "http://" + host + s.guard.Base()}
	response, err := b.PostForm("http://"+host+"/enter", url.Values{"code": {s.guard.Code()}})
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("not signed in: %s", response.Status)
	}
	return b
}

func (b *browser) get(path string) (int, string) {
	b.t.Helper()
	response, err := b.Get(b.base + path)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.read(response)
}

// read returns the status of an answer, and its body.
func (b *browser) read(response *http.Response) (int, string) {
	b.t.Helper()
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(http.MaxBytesReader(nil, response.Body, most))
	if err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// stream opens a stream. The channel receives its fragments, and ends with it.
func (b *browser) stream(ctx context.Context, path string) (int, <-chan page.Fragment) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	response, err := b.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	fragments := make(chan page.Fragment)
	var stream sync.WaitGroup
	b.t.Cleanup(stream.Wait)
	stream.Go(func() {
		defer close(fragments)
		defer func() { _ = response.Body.Close() }()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, most)
		for lines.Scan() {
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			var f page.Fragment
			if is && json.Unmarshal([]byte(data), &f) == nil {
				select {
				case fragments <- f:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	return response.StatusCode, fragments
}

// await returns the first fragment with an ID and a text.
func await(t *testing.T, fragments <-chan page.Fragment, id, text string) page.Fragment {
	t.Helper()
	last := page.Fragment{}
	for end := time.After(time.Minute); ; {
		select {
		case f, more := <-fragments:
			if !more {
				t.Fatalf("the stream ended before %s had %q", id, text)
			}
			if f.ID == id {
				last = f
			}
			if f.ID == id && strings.Contains(string(f.HTML), text) {
				return f
			}
		case <-end:
			t.Fatalf("%s never had %q: %s", id, text, last.HTML)
		}
	}
}

func webPackage() *corev1alpha1.Package {
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	pkg.Spec.Image = "registry.example.com/web:1"
	return pkg
}

// Changes in the cluster are sent to an open page, and a page that is opened later has them.
func TestStream(t *testing.T) {
	t.Parallel()
	cl := clustertest.FakeCluster(t)
	b := serve(t, cl)
	if status, text := b.get("packages"); status != http.StatusOK || !strings.Contains(text, "No package is installed") {
		t.Fatalf("at first: %d %s", status, text)
	}
	_, fragments := b.stream(t.Context(), "packages/stream")
	pkg := webPackage()
	require.NoError(t, cl.Create(t.Context(), pkg))
	await(t, fragments, "rows", `data-state="pending"`)
	pkg.Status = clustertest.Available()
	pkg.Finalizers = []string{corev1alpha1.MetricsFinalizer}
	require.NoError(t, cl.Status().Update(t.Context(), pkg))
	await(t, fragments, "rows", `data-state="available"`)
	if _, text := b.get("packages?q=web"); !strings.Contains(text, `data-state="available"`) {
		t.Errorf("a page that is opened later: %s", text)
	}
	if status, text := b.get("none"); status != http.StatusNotFound || !strings.Contains(text, "There is no page") {
		t.Errorf("no page: %d %s", status, text)
	}
}

// However often packages change, a stream sends at most four times a second. The last fragment has
// the final state.
func TestStreamRate(t *testing.T) {
	t.Parallel()
	pkg := webPackage()
	cl := clustertest.FakeCluster(t, pkg)
	b := serve(t, cl)
	_, fragments := b.stream(t.Context(), "packages/stream")
	await(t, fragments, "rows", "package shop/web")
	begin, sent := time.Now(), 0
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range 400 {
			pkg.Spec.Image = fmt.Sprintf("registry.example.com/web:%d", i)
			if err := cl.Update(t.Context(), pkg); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	for last := false; !last; {
		f := <-fragments
		if f.ID == "rows" {
			sent++
		}
		last = strings.Contains(string(f.HTML), "web:399")
	}
	<-written
	if most := int(time.Since(begin)/watches.Interval) + 2; sent > most {
		t.Errorf("%d times in %s", sent, time.Since(begin))
	}
}

// A stream ends with the command, and the number of concurrent streams is limited.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	b := serve(t, clustertest.FakeCluster(t))
	ctx, cancel := context.WithCancel(t.Context())
	for range pageStreams {
		status, fragments := b.stream(ctx, "packages/stream")
		if status != http.StatusOK {
			t.Fatalf("stream: %d", status)
		}
		await(t, fragments, "rows", "No package")
	}
	if status, _ := b.stream(ctx, "packages/stream"); status != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", status)
	}
	cancel()
	for end := time.Now().Add(time.Minute); ; {
		again, end2 := context.WithCancel(t.Context())
		status, _ := b.stream(again, "packages/stream")
		end2()
		if status == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after the others have ended: %d", status)
		}
	}
}

// failing is a cluster that answers with an error as long as one is set.
type failing struct {
	clustertest.Listing
	err atomic.Pointer[error]
	// wide only applies to lists of all namespaces.
	wide error
	stop chan struct{}
}

func (f *failing) refusal(list any, opts []client.ListOption) error {
	if err := f.err.Load(); err != nil && *err != nil {
		return *err
	}
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	if _, namespaced := list.(*corev1alpha1.PackageList); namespaced && o.Namespace == "" {
		return f.wide
	}
	return nil
}

// List implements client.Reader.
func (f *failing) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := f.refusal(list, opts); err != nil {
		return err
	}
	return f.WithWatch.List(ctx, list, opts...)
}

// Watch implements client.WithWatch.
func (f *failing) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	if err := f.refusal(list, opts); err != nil {
		return nil, err
	}
	w, err := f.WithWatch.Watch(ctx, list, opts...)
	if err == nil {
		go func() {
			select {
			case <-f.stop:
				w.Stop()
			case <-ctx.Done():
			}
		}()
	}
	return w, err
}

func failingCluster(t *testing.T, wide error, objects ...client.Object) (*cluster.Cluster, *failing) {
	t.Helper()
	cl := clustertest.FakeCluster(t, objects...)
	f := &failing{Listing: clustertest.Listing{WithWatch: cl.WithWatch}, wide: wide, stop: make(chan struct{})}
	cl.WithWatch = f
	return cl, f
}

var forbidden = apierrors.NewForbidden(schema.GroupResource{Group: corev1alpha1.GroupName, Resource: "packages"}, "", errors.New("not any more <img src=x onerror=alert(1)>"))

// If a watch is forbidden half-way, or a connection is lost, a text on the page reports it, and the
// page shows the last known state. The text is removed when the answer changes.
func TestWatchFailsHalfWay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		note string
	}{
		"forbidden": {forbidden, "You may not watch packages: they are shown as they were at "},
		"away":      {&url.Error{Op: "Get", URL: "https://fake", Err: errors.New("connection refused")}, "the cluster at https://fake cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl, f := failingCluster(t, nil, webPackage())
			b := serve(t, cl)
			if _, text := b.get("packages"); !strings.Contains(text, "package shop/web") || strings.Contains(text, `class="note"`) {
				t.Fatalf("at first: %s", text)
			}
			_, fragments := b.stream(t.Context(), "packages/stream")
			f.err.Store(&test.err)
			close(f.stop)
			got := await(t, fragments, "notes", test.note)
			if strings.Contains(string(got.HTML), "<img") {
				t.Errorf("the note has markup: %s", got.HTML)
			}
			if _, text := b.get("packages"); !strings.Contains(text, "package shop/web") {
				t.Error("the last known state is not shown")
			}
			f.err.Store(new(error))
			for {
				if f, more := <-fragments; !more || f.ID == "notes" && !strings.Contains(string(f.HTML), test.note) {
					break
				}
			}
		})
	}
}

// A user who may not watch all namespaces sees the packages in the namespace of the context, and a
// note.
func TestOneNamespace(t *testing.T) {
	t.Parallel()
	other := webPackage()
	other.Namespace = "other"
	cl, _ := failingCluster(t, forbidden, webPackage(), other)
	_, text := serve(t, cl).get("packages")
	if !strings.Contains(text, "package shop/web") || strings.Contains(text, "package other/web") || !strings.Contains(text, "You may only watch packages in namespace shop") {
		t.Errorf("got %s", text)
	}
}

// The page of a package has its revisions, compares them without values of Secrets, follows
// changes, and ends with the package. No page has its configuration or a value of a Secret.
func TestPackagePage(t *testing.T) {
	t.Parallel()
	var objects []client.Object
	for _, o := range clustertest.Revised(func(pkg *corev1alpha1.Package, _ *corev1alpha1.ObjectDeployment) {
		pkg.Spec.Config = clustertest.Raw(`{"password":"planted-value"}`)
		pkg.Finalizers = []string{corev1alpha1.MetricsFinalizer}
		pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{PackageName: "web", CatalogName: "web.example.com"}
	}) {
		if set, is := o.(*corev1alpha1.ObjectSet); is && set.OwnerReferences[0].UID == "dep" {
			set.Labels[corev1alpha1.PackageLabel] = "web"
		}
		objects = append(objects, o)
	}
	offered := &corev1alpha1.AvailablePackage{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web.example.com"}}
	offered.Spec = corev1alpha1.AvailablePackageSpec{PackageName: "web.example.com", Display: &corev1alpha1.PackageDisplay{IconSVG: []byte("<svg/>")}}
	cl := clustertest.FakeCluster(t, append(objects, offered)...)
	b := serve(t, cl)
	_, list := b.get("packages")
	status, text := b.get("packages/shop/web")
	for _, want := range []string{"<h1>web</h1>", "Package source image changed.", "/packages/shop/web/diff?from=1&amp;to=2", "kubectl package rollout undo package/web -n shop --to-revision 1", ";base64,PHN2Zy8&#43;"} {
		if status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%d, it has no %q: %s", status, want, text)
		}
	}
	status, diff := b.get("packages/shop/web/diff?from=1&to=2")
	if status != http.StatusOK || !strings.Contains(diff, "spec.template.spec.containers[name=web].image") || !strings.Contains(diff, "(hidden)") {
		t.Errorf("%d, diff: %s", status, diff)
	}
	for name, page := range map[string]string{"list": list, "package": text, "diff": diff} {
		for _, secret := range []string{"planted-value", clustertest.SecretValue, "b3RoZXItc2VjcmV0"} {
			if strings.Contains(page, secret) {
				t.Errorf("%s has %q", name, secret)
			}
		}
	}
	for path, want := range map[string]int{
		"packages/shop/none": http.StatusNotFound, "clusterpackages/web": http.StatusNotFound, "packages/shop/web/diff": http.StatusNotFound,
		"packages/shop/web/diff?from=1&to=9": http.StatusNotFound,
	} {
		if got, _ := b.get(path); got != want {
			t.Errorf("%s: %d", path, got)
		}
	}

	_, fragments := b.stream(t.Context(), "packages/shop/web/stream")
	await(t, fragments, "summary", `data-state="available"`)
	pkg := &corev1alpha1.Package{}
	require.NoError(t, cl.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, pkg))
	pkg.Status.Conditions = []metav1.Condition{clustertest.Condition("Invalid", "True", "ConfigInvalid", "config.title is missing")}
	pkg.Status.Conditions[0].ObservedGeneration = pkg.Generation
	require.NoError(t, cl.Status().Update(t.Context(), pkg))
	await(t, fragments, "summary", `data-state="invalid"`)
	await(t, fragments, "cause", "config.title is missing")
	pkg.Finalizers = nil
	require.NoError(t, cl.Update(t.Context(), pkg))
	require.NoError(t, cl.Delete(t.Context(), pkg))
	for range fragments { // until it ends
	}
	if got, _ := b.get("packages/shop/web"); got != http.StatusNotFound {
		t.Errorf("after the deletion: %d", got)
	}
}
