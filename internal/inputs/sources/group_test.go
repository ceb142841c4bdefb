package sources

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// server has the metadata of ConfigMaps. Like livestate.Cache, it delivers events one by one.
type server struct {
	mu       sync.Mutex
	objects  map[string]string // versions by namespace/name
	watching map[livestate.Selection]livestate.Listener
	most     int
	reads    int
	refusal  error // of reads
	pause    func() time.Duration
	lists    time.Duration // approximate time between lists
	version  int
	log      []string // names in the order of their changes
}

func newServer() *server {
	return &server{objects: map[string]string{}, watching: map[livestate.Selection]livestate.Listener{}, pause: func() time.Duration { return 0 }, lists: time.Hour}
}

func (s *server) watches() *Watches {
	w := NewWatches(s.listen, s.read)
	w.Enqueue = func(types.NamespacedName) {}
	return w
}

func (s *server) key(sel livestate.Selection) string { return sel.Namespace + "/" + sel.Name }

func (s *server) change(key string, exists bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	if s.objects[key] = fmt.Sprint(s.version); !exists {
		delete(s.objects, key)
	}
	s.log = append(s.log, key)
}

func named(key, version string) metav1.Object {
	namespace, name, _ := strings.Cut(key, "/")
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid", ResourceVersion: version}}
}

func (s *server) read(ctx context.Context, sel livestate.Selection) (metav1.Object, error) {
	time.Sleep(s.pause())
	s.mu.Lock()
	s.reads++
	version, err := s.objects[s.key(sel)], s.refusal
	s.mu.Unlock()
	time.Sleep(s.pause())
	switch {
	case err != nil:
		return nil, err
	case version == "":
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, sel.Name)
	}

	return named(s.key(sel), version), ctx.Err()
}

// listen shows a selection with a delay, and lists it again now and then.
func (s *server) listen(ctx context.Context, sel livestate.Selection, l livestate.Listener) {
	s.mu.Lock()
	s.watching[sel] = l
	s.most = max(s.most, len(s.watching))
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watching, sel)
		s.mu.Unlock()
	}()

	selected := func(key string) bool {
		namespace, name, _ := strings.Cut(key, "/")
		return namespace == sel.Namespace && (sel.Name == "" || sel.Name == name) && (sel.Names == nil || sel.Names.Has(name))
	}

	for ctx.Err() == nil {
		time.Sleep(s.pause())
		var all []metav1.Object
		s.mu.Lock()
		objects, seen := map[string]string{}, len(s.log)
		for key, version := range s.objects {
			objects[key] = version
		}
		s.mu.Unlock()
		for key, version := range objects {
			if selected(key) {
				all = append(all, named(key, version))
			}
		}
		time.Sleep(s.pause())
		l.Listed(all)
		for until := time.Now().Add(s.lists); time.Now().Before(until); {
			select {
			case <-ctx.Done():
				return
			case <-time.After(10*time.Millisecond + s.pause()):
			}
			s.mu.Lock()
			changed := s.log[seen:]
			seen = len(s.log)
			objects := map[string]string{}
			for _, key := range changed {
				objects[key] = s.objects[key]
			}
			s.mu.Unlock()
			for _, key := range changed {
				switch {
				case !selected(key):
				case objects[key] == "":
					l.Deleted(named(key, ""))
				default:
					l.Changed(named(key, objects[key]))
				}
			}
		}
	}
}

func configMaps(namespace string, n int) (refs []Ref) {
	for i := range n {
		refs = append(refs, Ref{Kind: KindConfigMap, Namespace: namespace, Name: fmt.Sprintf("c-%03d", i)})
	}
	return refs
}

// Beyond a number of sources in a namespace, one watch of its metadata shows the others, until none
// of them is in use.
func TestManySources(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var mu sync.Mutex
		woken := 0
		w := s.watches()
		w.Enqueue = func(types.NamespacedName) {
			mu.Lock()
			defer mu.Unlock()
			woken++
		}
		ctx, stop := context.WithCancel(t.Context())
		defer time.Sleep(time.Second) // until all goroutines have ended
		defer stop()
		go func() { _ = w.Start(ctx) }()
		synctest.Wait()
		user, other := types.NamespacedName{Namespace: "many", Name: "t"}, types.NamespacedName{Namespace: "few", Name: "t"}
		refs := configMaps("many", limits.SourceWatches+350)
		last := refs[len(refs)-1]
		w.Use(user, refs)
		w.Use(other, configMaps("few", 1))
		expectWatches := func(reason string, want int) {
			t.Helper()
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			require.Equal(t, want, len(s.watching), reason)
		}
		expectWatches("many", limits.SourceWatches+1+1)
		if !w.State(last).Known || w.State(last).Version != "" {
			t.Errorf("of none: %+v", w.State(last))
		}
		key := last.Namespace + "/" + last.Name
		reads, wakes := s.reads, woken
		s.change(key, true)
		s.change("many/unused", true)
		expectWatches("a change", limits.SourceWatches+1+1)
		if w.State(last).Version != "uid/1" || s.reads != reads+1 || woken != wakes+1 {
			t.Errorf("after a change: %+v, by %d reads, %d are woken", w.State(last), s.reads-reads, woken-wakes)
		}
		s.change(key, false)
		expectWatches("a deletion", limits.SourceWatches+1+1)
		if !w.State(last).Known || w.State(last).Version != "" {
			t.Errorf("deleted: %+v", w.State(last))
		}
		s.change("many/late", true)
		expectWatches("a change of an unused source", limits.SourceWatches+1+1)
		late := Ref{Kind: KindConfigMap, Namespace: "many", Name: "late"}
		w.Use(user, append(slices.Clone(refs), late))
		expectWatches("a source that is there before", limits.SourceWatches+1+1)
		if w.State(late).Version == "" {
			t.Errorf("a source that is there before: %+v", w.State(late))
		}
		w.Use(user, refs[limits.SourceWatches:])
		expectWatches("fewer", 1+1)
		w.Use(user, refs[:2])
		expectWatches("few", 2+1)
		if s.most > limits.SourceWatches+2 {
			t.Errorf("%d watches at a time", s.most)
		}
		w.Use(user, nil)
		w.Use(other, nil)
		expectWatches("none", 0)
		if len(w.single)+len(w.groups) > 0 {
			t.Errorf("left are %v, %v", w.single, w.groups)
		}
	})
}

// An error of the shared watch, or of the read of one source, is reported for the source, and the
// request is repeated.
func TestManySourcesFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := s.watches()
		ctx, stop := context.WithCancel(t.Context())
		defer time.Sleep(time.Second) // until all goroutines have ended
		defer stop()
		go func() { _ = w.Start(ctx) }()
		synctest.Wait()
		refs := configMaps("many", limits.SourceWatches+1)
		last := refs[limits.SourceWatches]
		s.change("many/"+last.Name, true)
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
		s.refusal = apierrors.NewInternalError(errors.New("in a moment"))
		w.Use(types.NamespacedName{Name: "t"}, refs)
		time.Sleep(20 * time.Millisecond)
		if state := w.State(last); state.Known || state.Err != nil {
			t.Errorf("a read that can succeed in a moment: %+v", state)
		}
		s.refusal = forbidden
		time.Sleep(time.Second)
		if state := w.State(last); state.Known || !apierrors.IsForbidden(state.Err) {
			t.Errorf("a refused read: %+v", state)
		}
		s.refusal = nil
		time.Sleep(2 * limits.WatchBackoffMax)
		want := State{Known: true, Version: "uid/1"}
		if state := w.State(last); state != want {
			t.Errorf("a read that succeeds: %+v", state)
		}
		s.mu.Lock()
		var l livestate.Listener
		for sel, listener := range s.watching {
			if sel.Name == "" {
				l = listener
			}
		}
		s.mu.Unlock()
		l.Failed(forbidden)
		l.Failed(forbidden)
		synctest.Wait()
		if state := w.State(last); !apierrors.IsForbidden(state.Err) || !state.Known {
			t.Errorf("a refused watch: %+v", state)
		}
		s.change("many/"+last.Name, true)
		time.Sleep(20 * time.Millisecond)
		if state := w.State(last); !apierrors.IsForbidden(state.Err) {
			t.Errorf("a read does not prove that the watch works: %+v", state)
		}
		l.Failed(nil)
		synctest.Wait()
		want.Version = "uid/2"
		if state := w.State(last); state != want {
			t.Errorf("a watch that works again: %+v", state)
		}
	})
}

// No change is lost, regardless of the watch that shows a source, even while the source moves from
// one to the other.
func TestManySourcesChange(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			upTo := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			s := newServer()
			s.pause = func() time.Duration { return time.Duration(upTo(30)) * time.Millisecond }
			s.lists = time.Duration(1+upTo(3)) * 500 * time.Millisecond
			w := s.watches()
			ctx, stop := context.WithCancel(t.Context())
			defer time.Sleep(time.Second)
			defer stop()
			go func() { _ = w.Start(ctx) }()
			synctest.Wait()
			all := configMaps("many", limits.SourceWatches+20)
			users := []types.NamespacedName{{Name: "a"}, {Name: "b"}}
			used := [][]Ref{nil, nil}
			for range 100 {
				switch upTo(4) {
				case 0:
					u, from := upTo(len(users)), upTo(len(all))
					used[u] = slices.Clone(all[from : from+upTo(len(all)-from+1)])
					w.Use(users[u], used[u])
				default:
					ref := all[upTo(len(all))]
					s.change(ref.Namespace+"/"+ref.Name, upTo(3) > 0)
				}
				time.Sleep(s.pause())
			}
			time.Sleep(5 * time.Second)
			for _, ref := range slices.Concat(used...) {
				want := State{Known: true}
				if version := s.objects[ref.Namespace+"/"+ref.Name]; version != "" {
					want.Version = "uid/" + version
				}
				if got := w.State(ref); got != want {
					t.Fatalf("seed %d: %s is %+v, want %+v", seed, ref, got, want)
				}
			}
			if s.most > 2*(limits.SourceWatches+1) { // watches that are ending count as well
				t.Errorf("seed %d: %d watches at a time", seed, s.most)
			}
		})
	}
}
