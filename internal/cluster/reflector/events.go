package reflector

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"lockstep.run/lockstep/internal/kube/panics"
)

// Events decodes the stream of a watch. Most events are of writes of this manager, whose
// responses were decoded before. Decoding them again, as client-go does, takes several
// times as long.
type Events struct {
	runtime.NegotiatedSerializer
	// Object decodes an object that was added, changed or deleted. The text might not be JSON, and
	// no part of it must be kept.
	Object func(typ watch.EventType, text string) (runtime.Object, error)
}

// SupportedMediaTypes returns the wrapped serializer's, with streams of frames.
func (e Events) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := slices.Clone(e.NegotiatedSerializer.SupportedMediaTypes())
	for i := range infos {
		if stream := infos[i].StreamSerializer; stream != nil && infos[i].MediaType == runtime.ContentTypeJSON {
			infos[i].StreamSerializer = &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: frame{stream.Serializer}, Framer: framer{stream.Framer}}
		}
	}
	return infos
}

// DecoderToVersion returns the decoder of a frame's object.
func (e Events) DecoderToVersion(serializer runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return frameDecoder{Decoder: e.NegotiatedSerializer.DecoderToVersion(serializer, gv), object: e.Object}
}

// frame decodes the type of an event. The rest is decoded by frameDecoder before the
// next frame overwrites it.
type frame struct{ runtime.Serializer }

// Decode decodes into a *metav1.WatchEvent, whose object is the whole frame.
func (frame) Decode(data []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return nil, nil, fmt.Errorf("a watch is decoded into an unexpected %T", into)
	}
	event.Type, event.Object.Raw = gjson.GetBytes(data, "type").String(), data
	return event, nil, nil
}

// frameDecoder decodes the object of a frame.
type frameDecoder struct {
	// Decoder is for statuses, bookmarks, and everything else that is not an event.
	runtime.Decoder
	object func(typ watch.EventType, text string) (runtime.Object, error)
}

// Decode returns the object of the frame.
func (d frameDecoder) Decode(data []byte, gvk *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into != nil {
		return d.Decoder.Decode(data, gvk, into) // a list
	}

	fields := gjson.GetManyBytes(data, "type", "object")
	typ, text := watch.EventType(fields[0].String()), fields[1].Raw
	switch {
	case text == "":
		return d.Decoder.Decode(data, gvk, into) // a refusal
	case typ == watch.Error || typ == watch.Bookmark:
		return d.Decoder.Decode([]byte(text), gvk, into)
	}

	var obj runtime.Object
	err := panics.Guard(context.Background(), "decoding an event of a watch", func() (err error) {
		obj, err = d.object(typ, text)
		return err
	})
	return obj, nil, err
}

// CutManagedFields returns the text of an object with null as its managed fields, and these.
func CutManagedFields(text string) (rest []byte, fields gjson.Result) {
	fields = gjson.Get(text, "metadata.managedFields")
	if fields.Index == 0 {
		return []byte(text), gjson.Result{}
	}
	rest = append(make([]byte, 0, len(text)), text[:fields.Index]...)
	return append(append(rest, "null"...), text[fields.Index+len(fields.Raw):]...), fields
}
