package livestate

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// observed decodes the objects of a watch. A known state and a deleted object become
// *metav1.PartialObjectMetadata with only name and version, others *unstructured.Unstructured.
type observed struct {
	// known reports whether there is a record of exactly this state.
	known func(name, types.UID, string) bool
}

func (o observed) object(typ watch.EventType, text string) (runtime.Object, error) {
	fields := gjson.GetMany(text, "metadata.namespace", "metadata.name", "metadata.uid", "metadata.resourceVersion")
	of, uid, version := name{Namespace: fields[0].String(), Name: fields[1].String()}, types.UID(fields[2].String()), fields[3].String()
	if (typ == watch.Deleted || o.known(of, uid, version)) && gjson.Valid(text) {
		brief := &metav1.PartialObjectMetadata{}
		// Cloned, so that a record's key does not keep the text of the whole event.
		brief.Namespace, brief.Name = strings.Clone(of.Namespace), strings.Clone(of.Name)
		brief.UID, brief.ResourceVersion = types.UID(strings.Clone(string(uid))), strings.Clone(version)
		return brief, nil
	}

	live := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &live.Object); err != nil {
		return nil, fmt.Errorf("decode an object of a watch: %w", err)
	}

	return live, nil
}
