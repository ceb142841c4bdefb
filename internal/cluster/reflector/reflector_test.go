package reflector

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// TestFollowerListsWhatIsTrue: where there are no streaming lists, client-go asks for
// whatever an API server remembers first, and a process that starts acted on that.
func TestFollowerListsWhatIsTrue(t *testing.T) {
	var asked []string
	f := &Follower{Source: &cache.ListWatch{ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		asked = append(asked, options.ResourceVersion)
		return &corev1.ConfigMapList{}, nil
	}}}
	for _, version := range []string{"0", "", "7"} {
		if _, err := f.list(t.Context(), metav1.ListOptions{ResourceVersion: version}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"", "", "7"}, asked); diff != "" {
		t.Errorf("resource versions of lists (-want +got):\n%s", diff)
	}
}

// TestFollowerAsks once for each list, plain or streamed: what was seen since the first
// page says nothing of the others, and a watch goes on where the list ends.
func TestFollowerAsks(t *testing.T) {
	var got []string
	note := func(options metav1.ListOptions) { got = append(got, options.Continue+"@"+options.ResourceVersion) }
	f := &Follower{
		Source: &cache.ListWatch{
			ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
				note(options)
				return &corev1.ConfigMapList{}, nil
			},
			WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
				note(options)
				return watch.NewFake(), nil
			},
		},
		Ask: func(version string) string { return "asked for " + version },
	}
	for _, options := range []metav1.ListOptions{{ResourceVersion: "1"}, {Continue: "second", ResourceVersion: ""}} {
		if _, err := f.list(t.Context(), options); err != nil {
			t.Fatal(err)
		}
	}
	for _, options := range []metav1.ListOptions{{ResourceVersion: "2", SendInitialEvents: ptr.To(true)}, {ResourceVersion: "3"}} {
		if _, err := f.open(t.Context(), options); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"@asked for 1", "second@", "@asked for 2", "@3"}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
