package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/limits"
)

// flaky is a source of one Package, whose next watches after each change break
// before they tell of it.
type flaky struct {
	mu      sync.Mutex
	version int
	// breaking is how many watches are still to break; all of them do so by expired
	// versions where expired is set, else by a connection that is cut.
	breaking int
	expired  bool
}

func (f *flaky) change(breaking int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version, f.breaking = f.version+1, breaking
}

func (f *flaky) object() corev1alpha1.Package {
	version := strconv.Itoa(f.version)
	return corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one", UID: "1", ResourceVersion: version}}
}

func (f *flaky) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &corev1alpha1.PackageList{
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(f.version)}, Items: []corev1alpha1.Package{f.object()},
	}, nil
}

func (f *flaky) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("no streams")
	}
	events := make(chan watch.Event)
	w := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		for {
			f.mu.Lock()
			now, broken := f.object(), f.breaking > 0
			behind := options.ResourceVersion != now.ResourceVersion
			if behind && broken {
				f.breaking--
			}
			f.mu.Unlock()
			event := watch.Event{Type: watch.Modified, Object: &now}
			switch {
			case behind && broken && !f.expired:
				return
			case behind && broken:
				status := apierrors.NewResourceExpired("too old").Status()
				event = watch.Event{Type: watch.Error, Object: &status}
			}
			if behind {
				select {
				case events <- event:
					options.ResourceVersion = now.ResourceVersion
				case <-w.StopChan():
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-w.StopChan():
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return w, nil
}

// TestInformerKeepsUp: however often watches break, the informer is up to date
// soon after. client-go's own is up to a minute late.
func TestInformerKeepsUp(t *testing.T) {
	t.Parallel()
	for name, expired := range map[string]bool{"connections that are cut": false, "versions that expired": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				source := &flaky{version: 1, expired: expired}
				lw := &cache.ListWatch{ListWithContextFunc: source.ListWithContext, WatchFuncWithContext: source.WatchWithContext}
				informer := newInformer(cache.ToListerWatcherWithContext(lw), &corev1alpha1.Package{}, 0, cache.Indexers{}, nil)
				if err := informer.SetTransform(trim); err != nil {
					t.Fatal(err)
				}
				ended := make(chan struct{})
				go func() { informer.RunWithContext(ctx); close(ended) }()
				const breaking = 3
				for i := range 60 {
					source.change(breaking)
					begun := time.Now()
					for cachedVersion(informer) != strconv.Itoa(i+2) {
						time.Sleep(10 * time.Millisecond)
						if late := time.Since(begun); late > (breaking+1)*limits.WatchBackoffMax*6/5 {
							t.Fatalf("after %d changes the informer is %s late", i, late)
						}
					}
				}
				stop()
				<-ended
			})
		})
	}
}

// cachedVersion is that of the object in the informer's cache.
func cachedVersion(informer cache.SharedIndexInformer) string {
	for _, o := range informer.GetStore().List() {
		return o.(*corev1alpha1.Package).ResourceVersion
	}
	return ""
}

// TestOldLists: a list of an API server that is behind does not bring back what was
// true before. Where lists stay old, the cluster was restored from a backup.
func TestOldLists(t *testing.T) {
	t.Parallel()
	at := func(version string) []any {
		return []any{&corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: version}}}
	}
	for name, tc := range map[string]struct {
		reason string
		// lists are the versions of lists that come, one each half of limits.OldLists.
		lists []string
		want  string
	}{
		"behind once":     {"the next list is asked for", []string{"12", "15"}, "15"},
		"behind for long": {"the watch has delivered 14, which is not true any more", []string{"12", "12", "12"}, "12"},
		"behind at times": {"each time is short", []string{"12", "15", "12", "15", "12"}, "15"},
		"as old as known": {"nothing was missed", []string{"14"}, "14"},
		"no number":       {"versions that cannot be compared are believed", []string{"x"}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRelay(nil, &corev1alpha1.Package{}, nil)
				ctx, stop := context.WithCancel(t.Context())
				r.ctx = ctx
				go func() {
					for range r.events { // Nobody reads what is passed on.
					}
				}()
				defer close(r.events)
				defer stop()
				if err := errors.Join(r.Replace(at("10"), "11"), r.Update(at("14")[0])); err != nil {
					t.Fatal(err)
				}
				for _, version := range tc.lists {
					if err := r.Replace(at(version), version); err != nil && !errors.Is(err, livestate.ErrOld) {
						t.Fatal(err)
					}
					time.Sleep(limits.OldLists / 2)
				}
				if got := r.known[cache.ObjectName{Name: "a"}].GetResourceVersion(); got != tc.want {
					t.Errorf("the object is known at %s, want %s: %s", got, tc.want, tc.reason)
				}
			})
		})
	}
}

// TestOldListsOfAnotherKind: a manager that starts knows of one kind, and gets a list of
// another that was true before that; so does one that was connected again.
func TestOldListsOfAnotherKind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		// ask is the version that the second kind's list would be asked for with, and
		// asked the one that it is asked for with.
		ask, asked string
		// lists are the versions of lists that come, one each half of limits.OldLists.
		lists []string
		want  string
		// meanwhile the first kind's watch delivers 21, each time that a list is on its way.
		meanwhile bool
	}{
		"at first":        {"what is true now is as new as the first kind", "", "", []string{"12"}, "", false},
		"the next":        {"the API server is behind once", "", "", []string{"12", "20"}, "20", false},
		"as new":          {"what comes while it is on its way says nothing of it", "", "", []string{"20"}, "20", true},
		"overtaken":       {"it was asked for after the other had more", "", "", []string{"12", "20", "21"}, "21", true},
		"connected again": {"the second kind's own list may be older", "12", "", []string{"20"}, "20", false},
		"further":         {"the first kind is older", "30", "30", []string{"30"}, "30", false},
		"restored":        {"all lists are old", "12", "", []string{"12", "12", "12"}, "12", false},
		"no number":       {"versions that cannot be compared are believed", "x", "x", []string{"x"}, "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var newest livestate.Newest
				first, second := newRelay(nil, &corev1alpha1.Package{}, &newest), newRelay(nil, &corev1alpha1.ObjectDeployment{}, &newest)
				if err := first.Replace(nil, "20"); err != nil {
					t.Fatal(err)
				}
				for _, version := range tc.lists {
					if got := second.ask(tc.ask); got != tc.asked {
						t.Errorf("asked for %q, want %q", got, tc.asked)
					}
					if tc.meanwhile {
						first.progress.Advance("21")
					}
					if err := second.Replace(nil, version); err == nil {
						break
					} else if !errors.Is(err, livestate.ErrOld) {
						t.Fatal(err)
					}
					time.Sleep(limits.OldLists / 2)
				}
				if second.version != tc.want {
					t.Errorf("the list of version %q is known, want %q: %s", second.version, tc.want, tc.reason)
				}
				if name == "restored" && second.ask("13") != "13" {
					t.Error("what was seen before the backup was restored counts still")
				}
			})
		})
	}
}

// TestInformersOfOurKinds share what they have seen: a list of one kind is not older
// than that of another, whether it is streamed or not.
func TestInformersOfOurKinds(t *testing.T) {
	t.Parallel()
	var streamed atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			streamed.Add(1)
			http.Error(w, "no streaming lists", http.StatusUnprocessableEntity)
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	o, err := newOwn(&rest.Config{Host: server.URL}, ownScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for _, kind := range []struct {
		of    client.Object
		lists []client.ObjectList
		want  string
	}{
		{&corev1alpha1.ObjectSet{}, []client.ObjectList{&corev1alpha1.ObjectSetList{ListMeta: metav1.ListMeta{ResourceVersion: "20"}}}, "20"},
		{&corev1alpha1.ObjectDeployment{}, []client.ObjectList{
			&corev1alpha1.ObjectDeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "12"}},
			&corev1alpha1.ObjectDeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "20"}},
		}, "20"},
	} {
		lists := 0
		lw := &cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := kind.lists[min(lists, len(kind.lists)-1)]
			lists++
			return list, nil
		}}
		informer := cacheOptions(o).NewInformer(lw, kind.of, 0, cache.Indexers{})
		go informer.RunWithContext(ctx)
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			t.Fatal("not synced")
		}
		if got := informer.LastSyncResourceVersion(); got != kind.want {
			t.Errorf("%T: a list of version %q is believed, want %q", kind.of, got, kind.want)
		}
	}
	if streamed.Load() == 0 {
		t.Error("no list was asked for by a watch")
	}
}

func TestRelay(t *testing.T) {
	t.Parallel()
	object := func(name, uid, version string) *corev1alpha1.Package {
		return &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
	}
	listed := []any{object("a", "1", "10"), object("b", "2", "11")}
	for name, tc := range map[string]struct {
		reason string
		do     func(*relay) error
		want   []string
	}{
		"same list": {
			reason: "what is known already is no news",
			do: func(r *relay) error {
				return r.Replace([]any{object("a", "1", "10"), object("b", "2", "11")}, "20")
			},
		},
		"another list": {
			reason: "what happened while nobody watched is told",
			do: func(r *relay) error {
				return r.Replace([]any{object("b", "2", "12"), object("c", "3", "13")}, "20")
			},
			want: []string{"ADDED c 3@13", "DELETED a 1@10", "MODIFIED b 2@12"},
		},
		"replaced": {
			reason: "an object of the same name is another one",
			do:     func(r *relay) error { return r.Replace([]any{object("a", "1", "10"), object("b", "4", "14")}, "20") },
			want:   []string{"ADDED b 4@14", "DELETED b 2@11"},
		},
		"events": {
			reason: "a watch that goes on tells by itself",
			do: func(r *relay) error {
				return errors.Join(r.Add(object("c", "3", "13")), r.Update(object("c", "3", "14")), r.Delete(object("a", "1", "15")))
			},
			want: []string{"ADDED c 3@13", "DELETED a 1@15", "MODIFIED c 3@14"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelay(nil, &corev1alpha1.Package{}, nil)
			r.ctx = t.Context()
			if err := r.Replace(listed, "11"); err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() { done <- tc.do(r) }()
			var got []string
			for {
				select {
				case e := <-r.events:
					o := e.Object.(*corev1alpha1.Package)
					got = append(got, fmt.Sprintf("%s %s %s@%s", e.Type, o.Name, o.UID, o.ResourceVersion))
					continue
				case err := <-done:
					if err != nil {
						t.Fatal(err)
					}
				}
				break
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}
