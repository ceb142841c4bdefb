package livestate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// Events decodes the stream of a watch. Every write of ours comes back as an
// event, and mostly its answer was read before, so that there is no need to decode
// all of it again.
//
// The decoders of client-go scan each event three times and build all of it,
// which was a fifth of the manager's processor time in an install.
type Events struct {
	runtime.NegotiatedSerializer
	// Object makes an object of the text of one that was added, changed or deleted.
	// It must not keep a part of the text.
	Object func(typ watch.EventType, text string) (runtime.Object, error)
}

// SupportedMediaTypes returns those of the wrapped serializer, with streams that
// are decoded here.
func (e Events) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := slices.Clone(e.NegotiatedSerializer.SupportedMediaTypes())
	for i := range infos {
		if stream := infos[i].StreamSerializer; stream != nil && infos[i].MediaType == runtime.ContentTypeJSON {
			infos[i].StreamSerializer = &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: frame{}, Framer: stream.Framer}
		}
	}
	return infos
}

// DecoderToVersion returns the decoder of what frame leaves over.
func (e Events) DecoderToVersion(serializer runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return frameDecoder{Decoder: e.NegotiatedSerializer.DecoderToVersion(serializer, gv), object: e.Object}
}

// frame takes the type from an event and leaves the rest as it is, to be decoded
// before the next frame overwrites it. The framer has checked that it is JSON.
type frame struct{}

// Decode decodes into a *metav1.WatchEvent, whose object is the whole frame.
func (frame) Decode(data []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return nil, nil, fmt.Errorf("a watch is decoded into an unexpected %T", into)
	}
	event.Type, event.Object.Raw = gjson.GetBytes(data, "type").String(), data
	return event, nil, nil
}

// Encode is for a Serializer only: events are not sent.
func (frame) Encode(runtime.Object, io.Writer) error { return errors.New("events are only read") }

// Identifier names the encoding.
func (frame) Identifier() runtime.Identifier { return "livestate" }

// frameDecoder decodes the object of a frame.
type frameDecoder struct {
	// Decoder is for statuses, bookmarks, and what is no event.
	runtime.Decoder
	object func(typ watch.EventType, text string) (runtime.Object, error)
}

// Decode returns the object of the frame.
func (d frameDecoder) Decode(data []byte, gvk *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	fields := gjson.GetManyBytes(data, "type", "object")
	typ, text := watch.EventType(fields[0].String()), fields[1].Raw
	switch {
	case into != nil || text == "":
		return d.Decoder.Decode(data, gvk, into) // a list, or a refusal
	case typ == watch.Error || typ == watch.Bookmark:
		return d.Decoder.Decode([]byte(text), gvk, into)
	}
	obj, err := d.object(typ, text)
	return obj, nil, err
}

// observed decodes what there is no record of into an *unstructured.Unstructured.
// Of a state that is known, and of an object that is gone, only the name of the
// state is decoded, as a *metav1.PartialObjectMetadata.
type observed struct {
	// known reports whether there is a record of this very state.
	known func(name, types.UID, string) bool
}

func (o observed) object(typ watch.EventType, text string) (runtime.Object, error) {
	fields := gjson.GetMany(text, "metadata.namespace", "metadata.name", "metadata.uid", "metadata.resourceVersion")
	of, uid, version := name{fields[0].String(), fields[1].String()}, types.UID(fields[2].String()), fields[3].String()
	if typ == watch.Deleted || o.known(of, uid, version) {
		// These are parts of the text, which must not stay for them: the name becomes
		// the key of a record.
		brief := &metav1.PartialObjectMetadata{}
		brief.Namespace, brief.Name = strings.Clone(of.namespace), strings.Clone(of.name)
		brief.UID, brief.ResourceVersion = types.UID(strings.Clone(string(uid))), strings.Clone(version)
		return brief, nil
	}
	live := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &live.Object); err != nil {
		return nil, fmt.Errorf("decode an object of a watch: %w", err)
	}
	return live, nil
}
