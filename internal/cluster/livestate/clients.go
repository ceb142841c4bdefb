package livestate

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/cluster/reflector"
)

// clients share one connection pool.
type clients struct {
	config *rest.Config
	pool   *http.Client
	// objects decodes into unstructured objects, metadata into PartialObjectMetadata.
	objects, metadata rest.Interface
}

func newClients(config *rest.Config) (*clients, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil
	// A watch has no end; other requests end with their context.
	config.Timeout = 0
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandler = rest.NoWarnings{}
	}
	pool, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client to watch objects: %w", err)
	}

	all := &clients{config: config, pool: pool}
	if all.objects, err = rest.UnversionedRESTClientForConfigAndClient(dynamic.ConfigFor(config), pool); err != nil {
		return nil, fmt.Errorf("make a client to watch objects: %w", err)
	}
	if all.metadata, err = rest.UnversionedRESTClientForConfigAndClient(metadata.ConfigFor(config), pool); err != nil {
		return nil, fmt.Errorf("make a client to watch metadata: %w", err)
	}

	return all, nil
}

// watching returns a client for one watch.
func (c *clients) watching(decode observed) (rest.Interface, error) {
	config := dynamic.ConfigFor(c.config)
	config.NegotiatedSerializer = reflector.Events{NegotiatedSerializer: config.NegotiatedSerializer, Object: decode.object}
	return rest.UnversionedRESTClientForConfigAndClient(config, c.pool)
}

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
	rest, managed := reflector.CutManagedFields(text)
	if err := json.Unmarshal(rest, &live.Object); err != nil {
		return nil, fmt.Errorf("decode an object of a watch: %w", err)
	}
	if !managed.IsArray() {
		return live, nil
	}
	if !gjson.Valid(managed.Raw) {
		return nil, errors.New("decode an object of a watch: its managedFields are not valid JSON")
	}

	if metadata, isMap := live.Object["metadata"].(map[string]any); isMap {
		metadata["managedFields"] = entries(managed)
	}
	return live, nil
}

// entries decodes managedFields, except that the fields of each entry stay JSON: they have about as
// many parts as the rest of an object.
func entries(managed gjson.Result) []any {
	var all []any
	managed.ForEach(func(_, entry gjson.Result) bool {
		if !entry.IsObject() {
			return true
		}
		fields := map[string]any{}
		entry.ForEach(func(key, value gjson.Result) bool {
			switch {
			case value.Type == gjson.String:
				fields[key.String()] = strings.Clone(value.String())
			case value.IsObject():
				fields[key.String()] = strings.Clone(value.Raw)
			}
			return true
		})
		all = append(all, fields)
		return true
	})
	return all
}
