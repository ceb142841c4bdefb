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

// events decodes the stream of a watch. Every write of ours comes back as an
// event, and mostly its answer was read before: of such an event, and of a
// DELETED one, only the name of the state is decoded, as a
// *metav1.PartialObjectMetadata. Any other object is a
// *unstructured.Unstructured.
//
// The decoders of client-go scan each event three times and build all of it,
// which was a fifth of the manager's processor time in an install.
type events struct {
	runtime.NegotiatedSerializer
	// known tells whether there is a record of this very state.
	known func(name, types.UID, string) bool
}

// SupportedMediaTypes returns those of the wrapped serializer, with streams that
// are decoded here.
func (e events) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := slices.Clone(e.NegotiatedSerializer.SupportedMediaTypes())
	for i := range infos {
		if stream := infos[i].StreamSerializer; stream != nil && infos[i].MediaType == runtime.ContentTypeJSON {
			infos[i].StreamSerializer = &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: frame{}, Framer: stream.Framer}
		}
	}
	return infos
}

// DecoderToVersion returns the decoder of what frame leaves over.
func (e events) DecoderToVersion(serializer runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return frameDecoder{Decoder: e.NegotiatedSerializer.DecoderToVersion(serializer, gv), known: e.known}
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

// Encode is for a Serializer only: nobody sends events.
func (frame) Encode(runtime.Object, io.Writer) error { return errors.New("events are only read") }

// Identifier names the encoding.
func (frame) Identifier() runtime.Identifier { return "livestate" }

// frameDecoder decodes the object of a frame.
type frameDecoder struct {
	// Decoder is for statuses, bookmarks, and what is no event.
	runtime.Decoder
	known func(name, types.UID, string) bool
}

// Decode returns the object, or its metadata where nothing else matters.
func (d frameDecoder) Decode(data []byte, gvk *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	fields := gjson.GetManyBytes(data, "type", "object")
	typ, text := watch.EventType(fields[0].String()), fields[1].Raw
	switch {
	case into != nil || text == "":
		return d.Decoder.Decode(data, gvk, into) // a list, or a refusal
	case typ == watch.Error || typ == watch.Bookmark:
		return d.Decoder.Decode([]byte(text), gvk, into)
	}
	fields = gjson.GetMany(text, "metadata.namespace", "metadata.name", "metadata.uid", "metadata.resourceVersion")
	of, uid, version := name{fields[0].String(), fields[1].String()}, types.UID(fields[2].String()), fields[3].String()
	if typ == watch.Deleted || d.known(of, uid, version) {
		// These are parts of the text, which must not stay for them: the name becomes
		// the key of a record.
		brief := &metav1.PartialObjectMetadata{}
		brief.Namespace, brief.Name = strings.Clone(of.namespace), strings.Clone(of.name)
		brief.UID, brief.ResourceVersion = types.UID(strings.Clone(string(uid))), strings.Clone(version)
		return brief, nil, nil
	}
	live := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &live.Object); err != nil {
		return nil, nil, fmt.Errorf("decode an object of a watch: %w", err)
	}
	return live, nil, nil
}
