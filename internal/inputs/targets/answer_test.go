package targets

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/hostile"
	"lockstep.run/lockstep/test/require"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Bytes and values are counted before anything is decoded. For a watch they are counted per line.
func TestAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text  string
		lines bool
		want  string // of the error
	}{
		"within":                   {`{"a": [1, 2, {"b": "c,{[\",[["}]}`, false, ""},
		"too many bytes":           {`"` + strings.Repeat("a", 100) + `"`, false, "more than 100 bytes"},
		"too many values":          {`[1,1,1,1,1,1,1,1,1,1,1]`, false, "more than 10 values"},
		"many lines":               {strings.Repeat(`{"a": [1, 2, 3]}`+"\n", 50), true, ""},
		"a line of too many":       {`{"a": 1}` + "\n" + strings.Repeat("[", 11), true, "more than 10 values"},
		"a line that does not end": {`{"a": 1}` + "\n" + `{"a": "` + strings.Repeat(`\"`, 60), true, "more than 100 bytes"},
		"a line end in a text":     {`"` + strings.Repeat(`a`+"\n", 60), true, "more than 100 bytes"},
	} {
		var exceeded error
		a := &answer{
			ReadCloser: io.NopCloser(strings.NewReader(tc.text)), what: "it", admission: &admission{}, lines: tc.lines, bytes: 100, values: 10,
			exceeded: func(err error) error { exceeded = err; return err },
		}
		_, err := io.ReadAll(a)
		if (tc.want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), tc.want) || !errors.Is(exceeded, reflector.ErrTooLarge)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}

	page := &answer{ReadCloser: io.NopCloser(strings.NewReader("[[[")), bytes: 100, values: 1, asked: true, admission: &admission{}}
	if _, err := io.ReadAll(page); !errors.Is(err, reflector.ErrTooLarge) {
		t.Errorf("a page that can be requested in parts: %v", err)
	}
}

// FuzzAnswer checks that scan never counts fewer values than JSON decodes to.
//
// Code: answer.go
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"a": [1, 2, {"b": "c\"}"}]}`))
	f.Add([]byte(`[[],[],{},"\\"]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var value any
		if json.Unmarshal(text, &value) != nil {
			return
		}
		var s scan
		for _, c := range text {
			s.next(c, false)
		}
		if got := nodes(value); s.quoted || got > s.values+1 {
			t.Errorf("%d values of %d", s.values, got)
		}
	})
}

// nodes counts the elements of lists and maps, and the lists and maps themselves.
func nodes(value any) int {
	n := 1
	switch value := value.(type) {
	case []any:
		for _, inner := range value {
			n += nodes(inner)
		}
		if len(value) > 0 {
			n-- // the first element has no comma
		}
	case map[string]any:
		for _, inner := range value {
			n += nodes(inner)
		}
		if len(value) > 0 {
			n--
		}
	default:
	}

	return n
}

// watching opens a session as the manager does, and watches ConfigMaps.
func watching(ctx context.Context, config *rest.Config, held func(int64)) error {
	live, err := livestate.New(livestate.Options{
		Names:   apinames.Default,
		Config:  config,
		Observe: func(objects.Key, *unstructured.Unstructured) *objects.Observed { return &objects.Observed{} },
		Changed: func(...objects.Change) {}, KindChanged: func(schema.GroupKind) {}, Held: held,
	})
	if err != nil {
		return err
	}
	go func() { _ = live.Start(ctx) }()
	live.Use("a", []schema.GroupKind{{Kind: "ConfigMap"}})
	return nil
}

// A target's answer beyond the limits ends its session with a reason. Memory stays bounded, and the
// pauses grow.
func TestHostileTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		attack hostile.Attack
		want   string
	}{
		"an event without end": {hostile.WatchBomb(1 << 30), "an object of the target has more than 4194304 bytes"},
		"pages of 60 MiB":      {hostile.Pages(1, 10, 60<<20), "an object of the target has more than 4194304 bytes"},
		"empty lists":          {hostile.Nodes(2 << 20), "an object of the target has more than 200000 values"},
		"names without end":    {hostile.WatchNames(4000, 100), "needs more memory than the targets of the namespace shop can have"},
		"large pages":          {hostile.Pages(400, 4000, 100), "needs more memory than the targets of the namespace shop can have"},
		"groups without end":   {hostile.Discovery(200_000), "an answer of the target has more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := hostile.New(t, tc.attack)
			f := newFixtureWith(t, s.Kubeconfig(), watching)
			_, message := f.await(t, corev1alpha1.ReasonTargetLimitExceeded)
			if !strings.Contains(message, tc.want) || !strings.Contains(message, "tried again after 1s") {
				t.Errorf("message %q", message)
			}
			if sent := s.Sent.Load(); sent > 200<<20 {
				t.Errorf("read %d bytes", sent)
			}
			for {
				if _, _, state := f.Find(f.ref); strings.Contains(state.Message, "tried again after 2s") {
					return
				}
				select {
				case <-f.woken:
				case <-time.After(time.Minute):
					_, _, state := f.Find(f.ref)
					t.Fatalf("the pauses do not grow: %+v", state)
				}
			}
		})
	}
}

// A list ends after the maximum number of pages.
func TestPagesAreCounted(t *testing.T) {
	t.Parallel()
	stopped, suspected := 0, 0
	g := newGate(nil, func() { suspected++ })
	g.opened(func() { stopped++ })
	page := func(query string) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example.com/api/v1/configmaps?"+query, http.NoBody)
		require.NoError(t, err)
		return g.page(r, r.URL.Query())
	}

	for range 3 {
		require.NoError(t, page("limit=500"))
		for i := range limits.TargetPages - 1 {
			if err := page("limit=500&continue=a"); err != nil {
				t.Fatalf("page %d: %v", i, err)
			}
		}
	}

	if err := page("limit=500&continue=a"); err == nil || stopped != 1 || suspected != 1 || !errors.Is(g.over(), err) || !g.closed.Load() {
		t.Errorf("a page too many: %v, stopped %d times, suspected %d times", err, stopped, suspected)
	}
	if err := page("limit=500&continue=a"); err == nil || stopped != 1 || suspected != 1 {
		t.Errorf("once more: %v, stopped %d times, suspected %d times", err, stopped, suspected)
	}
}

// If a page is too large, smaller ones are requested.
func TestSmallerPages(t *testing.T) {
	t.Parallel()
	var asked []string
	attack := func(_ *hostile.Server, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/configmaps") {
			return false
		}
		limit := r.URL.Query().Get("limit")
		asked = append(asked, limit)
		size := map[string]int{"500": limits.TargetResponseBytes + 1, "50": limits.TargetResponseBytes + 1, "5": 100}[limit]
		_, _ = io.WriteString(w, `{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"remark": "`+strings.Repeat("a", size)+`"}, "items": []}`)
		return true
	}

	config, _, err := Connect(t.Context(), hostile.New(t, attack).Kubeconfig())
	require.NoError(t, err)
	client, err := rest.UnversionedRESTClientFor(metadata.ConfigFor(config))
	require.NoError(t, err)
	source := &reflector.Source{
		Client: client, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, MetadataOnly: true,
		NewList: func() kruntime.Object { return &metav1.PartialObjectMetadataList{} },
	}

	if _, err := source.ListWithContext(t.Context(), metav1.ListOptions{Limit: 500}); err != nil || strings.Join(asked, " ") != "500 50 5" {
		t.Errorf("asked for %v: %v", asked, err)
	}
}
