package livestate

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/test/require"
)

// TestEvents: only the name is decoded of a known state and of a deleted object;
// all else is decoded in full.
func TestEvents(t *testing.T) {
	t.Parallel()
	known := func(n name, uid types.UID, version string) bool {
		return n == name{Namespace: "n", Name: "a"} && uid == "u" && version == "7"
	}
	serializer := reflector.Events{NegotiatedSerializer: dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer, Object: observed{known}.object}
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a","uid":"u","resourceVersion":"7"},"data":{"big":1}}`
	for reason, tc := range map[string]struct{ frame, want string }{
		"our own write":           {`{"type":"MODIFIED","object":` + object + `}`, "*v1.PartialObjectMetadata n/a u 7"},
		"created by us":           {`{"type":"ADDED","object":` + object + `}`, "*v1.PartialObjectMetadata n/a u 7"},
		"deleted":                 {`{"type":"DELETED","object":{"metadata":{"name":"b","uid":"x","resourceVersion":"9"}}}`, "*v1.PartialObjectMetadata /b x 9"},
		"a state that is new":     {`{"type":"MODIFIED","object":{"kind":"A","metadata":{"namespace":"n","name":"a","uid":"u","resourceVersion":"8"}}}`, "*unstructured.Unstructured n/a u 8"},
		"the type comes last":     {`{"object":` + object + `,"type":"ADDED"}`, "*v1.PartialObjectMetadata n/a u 7"},
		"progress":                {`{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"12"}}}`, "*unstructured.Unstructured /  12"},
		"the watch is too old":    {`{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","status":"Failure","code":410}}`, "*v1.Status 410"},
		"a refusal, not a stream": {`{"apiVersion":"v1","kind":"Status","status":"Failure","code":429}`, "*v1.Status 429"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			info, _ := apiruntime.SerializerInfoForMediaType(serializer.SupportedMediaTypes(), apiruntime.ContentTypeJSON)
			event := &metav1.WatchEvent{}
			if _, _, err := info.StreamSerializer.Decode([]byte(tc.frame), nil, event); err != nil {
				t.Fatal(err)
			}
			obj, err := apiruntime.Decode(serializer.DecoderToVersion(info.Serializer, nil), event.Object.Raw)
			require.NoError(t, err)
			require.Equal(t, tc.want, describe(obj))
		})
	}
	list := &unstructured.UnstructuredList{}
	info, _ := apiruntime.SerializerInfoForMediaType(serializer.SupportedMediaTypes(), apiruntime.ContentTypeJSON)
	text := `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"3"},"items":[` + object + `]}`
	if _, _, err := serializer.DecoderToVersion(info.Serializer, nil).Decode([]byte(text), nil, list); err != nil || len(list.Items) != 1 || list.Items[0].GetUID() != "u" {
		t.Errorf("a list is decoded as %+v, %v", list, err)
	}
}

// The name of a known state becomes the key of a record: it must not hold the text
// of the event, which is a hundred times as long.
func TestKnownEventsHoldNoText(t *testing.T) {
	// Not parallel: it measures the heap.
	known := func(name, types.UID, string) bool { return true }
	text := `{"kind":"ConfigMap","metadata":{"namespace":"space","name":"one","uid":"u","resourceVersion":"7"},"data":{"a":"` +
		strings.Repeat("x", 1<<20) + `"}}`
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var held []*metav1.PartialObjectMetadata
	for i := range 16 {
		obj, err := observed{known}.object(watch.Added, strings.Replace(text, "one", fmt.Sprint(i), 1))
		require.NoError(t, err)
		held = append(held, obj.(*metav1.PartialObjectMetadata))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d names hold %d bytes", len(held), grown)
	}
	runtime.KeepAlive(held)
}

func describe(obj apiruntime.Object) string {
	switch obj := obj.(type) {
	case *metav1.Status:
		return fmt.Sprintf("%T %d", obj, obj.Code)
	case metav1.Object:
		return fmt.Sprintf("%T %s/%s %s %s", obj, obj.GetNamespace(), obj.GetName(), obj.GetUID(), obj.GetResourceVersion())
	}
	return fmt.Sprintf("%T", obj)
}
