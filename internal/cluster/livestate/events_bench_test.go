package livestate

import (
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/rest/watch"

	"lockstep.run/lockstep/internal/cluster/reflector"
)

// benchEvent is of a ConfigMap of 300 bytes, as the benchmark installs.
const benchEvent = `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"bench-cm-0001","namespace":"bench","uid":"e2c7a1a2-7c8a-4a0e-b6a4-6a4fa9c9d8a1","resourceVersion":"12345","creationTimestamp":"2026-11-23T12:00:00Z","labels":{"app.kubernetes.io/instance":"bench","app.kubernetes.io/name":"bench","package-operator.run/cache":"True","package-operator.run/package":"bench","package-operator.run/version":"1"},"annotations":{"package-operator.run/revision":"1"},"ownerReferences":[{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectSet","name":"bench-abcdefghij","uid":"a2c7a1a2-7c8a-4a0e-b6a4-6a4fa9c9d8a1","controller":true,"blockOwnerDeletion":true}],"managedFields":[{"manager":"package-operator","operation":"Update","apiVersion":"v1","time":"2026-11-23T12:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:a":{},"f:b":{},"f:c":{}},"f:metadata":{"f:annotations":{".":{},"f:package-operator.run/revision":{}},"f:labels":{".":{},"f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/name":{},"f:package-operator.run/cache":{},"f:package-operator.run/package":{},"f:package-operator.run/version":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"a2c7a1a2-7c8a-4a0e-b6a4-6a4fa9c9d8a1\"}":{}}}}}]},"data":{"a":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","b":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","c":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}}}
`

// BenchmarkEvents decodes 1,000 events: of states that are known, of others, and as
// client-go decodes all of them.
func BenchmarkEvents(b *testing.B) {
	library := dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
	decode := func(known bool) runtime.NegotiatedSerializer {
		return reflector.Events{NegotiatedSerializer: library, Object: observed{func(name, types.UID, string) bool { return known }}.object}
	}
	text := strings.Repeat(benchEvent, 1000)
	for reason, s := range map[string]runtime.NegotiatedSerializer{"known": decode(true), "unknown": decode(false), "library": library} {
		b.Run(reason, func(b *testing.B) {
			info, _ := runtime.SerializerInfoForMediaType(s.SupportedMediaTypes(), runtime.ContentTypeJSON)
			b.ReportAllocs()
			for b.Loop() {
				frames := info.StreamSerializer.Framer.NewFrameReader(io.NopCloser(strings.NewReader(text)))
				d := watch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer.Serializer), s.DecoderToVersion(info.Serializer, nil))
				for range 1000 {
					if _, _, err := d.Decode(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
