package reflector

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"lockstep.run/lockstep/test/require"
)

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
	n := &Named{
		Has: func(name string) bool { return name == "named" },
		ListerWatcherWithContext: &cache.ListWatch{
			ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
				asked = options
				list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "second"}}
				list.Items = append(list.Items, *object("other"), *object("named"), *object("another"))
				return list, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
		},
	}
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
