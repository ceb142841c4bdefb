package manager

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

func ownScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// setText is a set as the API server sends it, in a state.
func setText(version string) string {
	return `{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectSet","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z",` +
		`"managedFields":[{"manager":"x"}],"name":"shop-1","namespace":"n","resourceVersion":"` + version + `","uid":"u"},` +
		`"spec":{"phases":[{"name":"one","objects":[{"object":{"kind":"ConfigMap","data":{"Key":"1"}}}]}],"revision":3},` +
		`"status":{"conditions":[{"type":"Available","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`
}

// streamed sends events by a watch of the API server and returns what comes out.
func streamed(t *testing.T, o *own, of runtime.Object, frames ...string) []watch.Event {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := "/apis/package-operator.run/v1alpha1/objectsets"; r.URL.Path != want || r.URL.Query().Get("watch") != "true" ||
			r.URL.Query().Get("allowWatchBookmarks") != "true" || r.URL.Query().Get("resourceVersion") != "5" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		for _, frame := range frames {
			_, _ = fmt.Fprintln(w, frame)
		}
	}))
	defer server.Close()
	o.config.Host = server.URL
	w, err := o.source(toolscache.ToListerWatcherWithContext(&toolscache.ListWatch{}), of).WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "5"})
	if err != nil {
		t.Fatal(err)
	}
	var got []watch.Event
	for event := range w.ResultChan() {
		got = append(got, event)
	}
	return got
}

// TestWatchRefusedForAWhile: the pauses between requests are the informer's, not those
// that the API server asks for.
func TestWatchRefusedForAWhile(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "storage is (re)initializing", http.StatusTooManyRequests)
	}))
	defer server.Close()
	o, err := newOwn(&rest.Config{Host: server.URL}, ownScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	source := o.source(toolscache.ToListerWatcherWithContext(&toolscache.ListWatch{}), &corev1alpha1.ObjectSet{})
	if _, err := source.WatchWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsTooManyRequests(err) || asked.Load() != 1 {
		t.Errorf("asked %d times, and returned %v", asked.Load(), err)
	}
}

// What comes back from a write of ours is its answer; everything else, a deleted
// object included, is what a client of controller-runtime would make of it.
func TestOwnKindsAreWatched(t *testing.T) {
	t.Parallel()
	scheme := ownScheme(t)
	o, err := newOwn(&rest.Config{}, scheme)
	if err != nil {
		t.Fatal(err)
	}
	usual := func(version string) *corev1alpha1.ObjectSet {
		set := &corev1alpha1.ObjectSet{}
		decoder := serializer.NewCodecFactory(scheme).WithoutConversion()
		info, _ := runtime.SerializerInfoForMediaType(decoder.SupportedMediaTypes(), runtime.ContentTypeJSON)
		if err := runtime.DecodeInto(decoder.DecoderToVersion(info.Serializer, nil), []byte(setText(version)), set); err != nil {
			t.Fatal(err)
		}
		return set
	}
	answer := usual("7")
	o.deployments.Put(answer)
	answer.SetManagedFields(nil) // which no cache keeps
	got := streamed(t, o, &corev1alpha1.ObjectSet{},
		`{"type":"ADDED","object":`+setText("6")+`}`,
		`{"type":"MODIFIED","object":`+setText("7")+`}`,
		`{"type":"BOOKMARK","object":{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectSet","metadata":{"resourceVersion":"12"}}}`,
		`{"type":"DELETED","object":`+setText("7")+`}`,
		`{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","status":"Failure","code":410,"message":"too old"}}`,
	)
	bookmark := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "12"}}
	want := []watch.Event{
		{Type: watch.Added, Object: usual("6")},
		{Type: watch.Modified, Object: answer},
		{Type: watch.Bookmark, Object: bookmark},
		{Type: watch.Deleted, Object: usual("7")},
		{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Code: 410, Message: "too old"}},
	}
	for i := range got {
		if s, ok := got[i].Object.(*metav1.Status); ok {
			s.TypeMeta = metav1.TypeMeta{}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got[1].Object.(*corev1alpha1.ObjectSet).Spec.Phases[0].Name = "changed"
	if diff := cmp.Diff(client.Object(answer), o.deployments.State("u", "7")); diff != "" {
		t.Errorf("the object is shared with the store:\n%s", diff)
	}
}

// An answer is taken for the very state only, and for an object of that type.
func TestAnswersOfOtherStates(t *testing.T) {
	t.Parallel()
	o, err := newOwn(&rest.Config{}, ownScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	o.packages.Put(&corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "6"}})
	o.deployments.Put(&corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "8"}})
	for _, event := range streamed(t, o, &corev1alpha1.ObjectSet{}, `{"type":"ADDED","object":`+setText("6")+`}`, `{"type":"MODIFIED","object":`+setText("7")+`}`) {
		if set, ok := event.Object.(*corev1alpha1.ObjectSet); !ok || set.Name != "shop-1" {
			t.Errorf("%s of %#v", event.Type, event.Object)
		}
	}
}

// The resources are guessed from the kinds; other kinds are watched as ever.
func TestSourcesOfInformers(t *testing.T) {
	t.Parallel()
	scheme := ownScheme(t)
	o, err := newOwn(&rest.Config{}, scheme)
	if err != nil {
		t.Fatal(err)
	}
	lw := toolscache.ToListerWatcherWithContext(&toolscache.ListWatch{})
	for of, want := range map[runtime.Object]string{
		&corev1alpha1.Package{}: "packages", &corev1alpha1.ClusterPackage{}: "clusterpackages",
		&corev1alpha1.ObjectDeployment{}: "objectdeployments", &corev1alpha1.ClusterObjectDeployment{}: "clusterobjectdeployments",
		&corev1alpha1.ObjectSet{}: "objectsets", &corev1alpha1.ClusterObjectSet{}: "clusterobjectsets",
		&corev1alpha1.ObjectSlice{}: "objectslices", &corev1alpha1.ClusterObjectSlice{}: "clusterobjectslices",
		&corev1.Secret{}: "", &metav1.PartialObjectMetadata{}: "",
	} {
		resource := ""
		if w, ok := o.source(lw, of).(*watching); ok {
			resource = w.resource
		}
		if resource != want {
			t.Errorf("%T is watched as %q, want %q", of, resource, want)
		}
	}
}
