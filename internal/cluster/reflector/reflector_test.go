package reflector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// TestReflectorListsWhatIsTrue: without streaming lists, client-go first requests any state
// that an API server remembers, and a starting process would act on that.
func TestReflectorListsWhatIsTrue(t *testing.T) {
	var asked []string
	f := &Reflector{Source: &cache.ListWatch{ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		asked = append(asked, options.ResourceVersion)
		return &corev1.ConfigMapList{}, nil
	}}}
	for _, version := range []string{"0", "", "7"} {
		if _, err := f.list(t.Context(), metav1.ListOptions{ResourceVersion: version}); err != nil {
			t.Fatal(err)
		}
	}
	require.Equal(t, []string{"", "", "7"}, asked, "resource versions of lists")
}

// The handlers of errors pause by a clock outside the synctest bubble.
func init() { utilruntime.ErrorHandlers = nil }

// TestReflectorAfterOutage: however long the API server was away, and also while one that
// came back refuses everyone until it has read the roles, it is watched again within 30 s.
func TestReflectorAfterOutage(t *testing.T) {
	t.Parallel()
	refused := &url.Error{Op: "Get", URL: "https://h", Err: syscall.ECONNREFUSED}
	lost := &url.Error{Op: "Get", URL: "https://h", Err: io.ErrUnexpectedEOF}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "packages"}, "", errors.New("no"))
	for name, away := range map[string]error{
		"refused": refused, "lost": lost, "forbidden": forbidden,
		"unavailable": apierrors.NewServiceUnavailable("no endpoints"), "overloaded": apierrors.NewTooManyRequests("later", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				const outage = 10 * time.Minute
				begin, reports, connected := time.Now(), 0, time.Duration(0)
				answer := func() error {
					if time.Since(begin) < outage {
						return away
					}
					connected = time.Since(begin)
					return nil
				}
				r := &Reflector{
					Source: &cache.ListWatch{
						ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
							return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, answer()
						},
						WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
							if time.Since(begin) >= outage && ptr.Deref(options.SendInitialEvents, false) {
								return nil, apierrors.NewBadRequest("no streaming lists")
							}
							return watch.NewFake(), answer()
						},
					},
					Store: cache.NewStore(cache.MetaNamespaceKeyFunc),
					Report: func(err error) {
						if reports++; err == nil {
							stop()
						}
					},
				}
				r.Run(logr.NewContext(ctx, logr.Discard()))
				if late := connected - outage; late > 30*time.Second || reports < 10 {
					t.Errorf("connected %s after the end of the outage, %d reports", late, reports)
				}
			})
		})
	}
}

// TestReflectorClosesWatches: client-go leaves a watch open whose list the store refused.
func TestReflectorClosesWatches(t *testing.T) {
	t.Parallel()
	opened := []*watch.FakeWatcher{watch.NewFake(), watch.NewFake()}
	n := 0
	r := &Reflector{Source: &cache.ListWatch{WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		n++
		return opened[n-1], nil
	}}}
	for range opened {
		if _, err := r.watch(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if !opened[0].IsStopped() || opened[1].IsStopped() {
		t.Error("the former watch is to be closed, and it alone")
	}
}

// clumsy is a listener that panics over each object.
type clumsy struct{}

func (clumsy) Listed([]metav1.Object) { panic("hunter2") }
func (clumsy) Changed(metav1.Object)  { panic("hunter2") }
func (clumsy) Deleted(metav1.Object)  { panic("hunter2") }

// TestPanics: client-go ends the process if a store panics.
func TestPanics(t *testing.T) {
	t.Parallel()
	store, object := NewStore[metav1.Object](clumsy{}), &corev1.ConfigMap{}
	for name, err := range map[string]error{
		"add": store.Add(object), "update": store.Update(object), "delete": store.Delete(object), "replace": store.Replace([]any{object}, "1"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	events := frameDecoder{object: func(watch.EventType, string) (runtime.Object, error) { panic("hunter2") }}
	if _, _, err := events.Decode([]byte(`{"type":"ADDED","object":{}}`), nil, nil); err == nil {
		t.Error("an event: no error")
	}
}

// Only the objects of some names are passed on from a list and a watch, without long fields.
func TestNamed(t *testing.T) {
	t.Parallel()
	object := func(name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: "1", Labels: map[string]string{"a": "b"},
			Annotations: map[string]string{"last-applied": "hunter2"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		}}
	}
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "named", ResourceVersion: "1"}}
	events, asked := watch.NewFakeWithChanSize(4, false), metav1.ListOptions{}
	n := Named(&cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			asked = options
			list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "second"}}
			list.Items = append(list.Items, *object("other"), *object("named"), *object("another"))
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
	}, func(name string) bool { return name == "named" })
	list, err := n.ListWithContext(t.Context(), metav1.ListOptions{Limit: 500})
	if err != nil || asked.Limit != namedPage {
		t.Fatalf("asked for %d: %v", asked.Limit, err)
	}
	wantList := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "second"}, Items: []metav1.PartialObjectMetadata{*want}}
	require.Equal(t, runtime.Object(wantList), list, "the list")
	w, err := n.WatchWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	events.Add(object("other"))
	events.Modify(object("named"))
	events.Delete(object("other"))
	events.Action(watch.Bookmark, object("other"))
	events.Stop()
	var got []watch.Event
	for e := range w.ResultChan() {
		got = append(got, e)
	}
	require.Equal(t, []watch.Event{{Type: watch.Modified, Object: want}, {Type: watch.Bookmark, Object: object("other")}}, got, "the events")
}

// readFrames reads a stream with a buffer of a size.
func readFrames(r io.Reader, size int) (all []string, err error) {
	in, data := framer{}.NewFrameReader(io.NopCloser(r)), make([]byte, size)
	var frame []byte
	for {
		n, err := in.Read(data)
		frame = append(frame, data[:n]...)
		switch {
		case err == nil:
			all, frame = append(all, string(frame)), nil
		case !errors.Is(err, io.ErrShortBuffer):
			return all, err
		}
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	const odd = `{"a":"}\"{\\","b":[{"c":"]"},"\\\\"]}`
	for name, tc := range map[string]struct {
		stream string
		want   []string
		err    error
	}{
		"lines":               {"{}\n" + odd + "\n", []string{"{}", odd}, io.EOF},
		"no event in between": {odd + odd + "{}", []string{odd, odd, "{}"}, io.EOF},
		"white space":         {" \r\n\t{ \"a\" :\n1 }\n \n", []string{"{ \"a\" :\n1 }"}, io.EOF},
		"nothing":             {"", nil, io.EOF},
		"an end in a frame":   {`{}{"a":"}`, []string{"{}"}, io.ErrUnexpectedEOF},
		"a frame that is big": {`{"a":"` + strings.Repeat("{", 100<<10) + `"}{}`, []string{`{"a":"` + strings.Repeat("{", 100<<10) + `"}`, "{}"}, io.EOF},
	} {
		for _, size := range []int{1, 3, 64 << 10} {
			for _, r := range []io.Reader{strings.NewReader(tc.stream), iotest.OneByteReader(strings.NewReader(tc.stream))} {
				got, err := readFrames(r, size)
				require.Equal(t, tc.want, got, name)
				if !errors.Is(err, tc.err) {
					t.Errorf("%s: the stream ends with %v, want %v", name, err, tc.err)
				}
			}
		}
	}
	if got, err := readFrames(strings.NewReader(`{}<html>{}`), 100); err == nil || errors.Is(err, io.EOF) || len(got) != 1 {
		t.Errorf("no JSON: %q, %v", got, err)
	}
	deepest := strings.Repeat("{[", limits.EventNesting/2) + strings.Repeat("]}", limits.EventNesting/2)
	if got, err := readFrames(strings.NewReader(deepest+`{"a":`+deepest), 100); len(got) != 1 || err == nil || !strings.Contains(err.Error(), "nested deeper than 10000") {
		t.Errorf("%d frames of deep ones, then %v", len(got), err)
	}
}

// FuzzFrames: a stream of JSON objects has the frames that encoding/json finds.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{"{}", `{"a":"\""}[]`, " {\"a\":[1,{}]}\n{\"\\\\\":\"}\"}", `{"a`, "{]}"} {
		f.Add(seed, 7)
	}
	f.Fuzz(func(t *testing.T, stream string, size int) {
		got, err := readFrames(strings.NewReader(stream), max(size%100, 1))
		decoder := json.NewDecoder(strings.NewReader(stream))
		for i := 0; ; i++ {
			var want json.RawMessage
			decodeErr := decoder.Decode(&want)
			switch {
			case decodeErr == nil && strings.HasPrefix(string(want), "{"):
				if i >= len(got) || got[i] != string(want) {
					t.Fatalf("frame %d of %q is %q, want %q (%v)", i, stream, got, want, err)
				}
				continue
			case errors.Is(decodeErr, io.EOF) && (i != len(got) || !errors.Is(err, io.EOF)):
				t.Fatalf("%q has the frames %q, and ends with %v", stream, got, err)
			}
			return
		}
	})
}

// TestPagesByBytes: lists of objects with nearly the maximum of metadata are read within the
// limits.
func TestPagesByBytes(t *testing.T) {
	t.Parallel()
	const objects, lists = 150, 4
	annotation := strings.Repeat("a", 250<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		next := ""
		if from+limit < objects {
			next = strconv.Itoa(from + limit)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": %q}, "items": [`, next)
		for i := from; i < min(from+limit, objects); i++ {
			_, _ = io.WriteString(w, strings.Repeat(",", min(i-from, 1))+fmt.Sprintf(`{"metadata": {"name": "%d", "annotations": {"a": "`, i))
			_, _ = io.WriteString(w, annotation)
			_, _ = io.WriteString(w, `"}}}`)
		}
		_, _ = io.WriteString(w, "]}")
	}))
	t.Cleanup(server.Close)
	config, read := metadata.ConfigFor(&rest.Config{Host: server.URL, QPS: -1}), &measured{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { read.RoundTripper = next; return read })
	BoundPages(config)
	client, err := rest.UnversionedRESTClientFor(config)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range lists {
		all.Go(func() {
			source := &Source{
				Client: client, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, MetadataOnly: true,
				NewList: func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
			}
			seen := 0
			err := pager.New(source.ListWithContext).EachListItem(context.WithoutCancel(t.Context()), metav1.ListOptions{}, func(runtime.Object) error { seen++; return nil })
			if err != nil || seen != objects {
				t.Errorf("%d objects: %v", seen, err)
			}
		})
	}
	all.Wait()
	if read.largest > limits.ResponseBytes+(1<<20) || read.most > limits.LargePages {
		t.Errorf("pages of up to %d MiB were read, and %d large ones at a time", read.largest>>20, read.most)
	}
}

// measured is a transport that measures how much is read.
type measured struct {
	http.RoundTripper
	mu                   sync.Mutex
	largest, large, most int
}

// RoundTrip sends a request.
func (m *measured) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := m.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = &measuredBody{ReadCloser: resp.Body, of: m}
	}
	return resp, err
}

type measuredBody struct {
	io.ReadCloser
	of    *measured
	bytes int
}

const certainlyLarge = limits.LargePageBytes * 2

// Read implements io.Reader.
func (b *measuredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if b.bytes <= certainlyLarge && b.bytes+n > certainlyLarge {
		b.of.large++
	}
	b.bytes += n
	b.of.largest, b.of.most = max(b.of.largest, b.bytes), max(b.of.most, b.of.large)
	return n, err
}

// Close implements io.Closer.
func (b *measuredBody) Close() error {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if b.bytes > certainlyLarge {
		b.of.large--
	}
	return b.ReadCloser.Close()
}

func TestCutManagedFields(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		`{"metadata":{"name":"a","managedFields":[{"manager":"]"}],"uid":"u"},"spec":{}}`: {`{"metadata":{"name":"a","managedFields":null,"uid":"u"},"spec":{}}`, `[{"manager":"]"}]`},
		`{"metadata":{"name":"a"},"spec":{"managedFields":1}}`:                            {`{"metadata":{"name":"a"},"spec":{"managedFields":1}}`, ""},
		`{}`: {`{}`, ""},
	} {
		rest, fields := CutManagedFields(text)
		require.Equal(t, want, [2]string{string(rest), fields.Raw}, text)
	}
}
