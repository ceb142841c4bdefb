package handover

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/objects"
)

// Recorded is an object that another tool records as installed by it.
type Recorded struct {
	schema.GroupVersionKind
	// Namespace is that of the release for an object that names none, whatever its kind.
	Namespace, Name string
	// Incidental objects were created with the others and are not managed by the tool: hooks of Helm, and
	// definitions in the folder crds of a chart.
	Incidental bool
}

// Keys returns the key of the object as one in a namespace and as one of the cluster: a record does not say
// which it is.
func (r *Recorded) Keys() [2]objects.Key {
	key := objects.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	cluster := key
	cluster.Namespace = ""
	return [2]objects.Key{key, cluster}
}

// HelmRelease is one revision of a release, as Helm stores it.
type HelmRelease struct {
	Status  string
	Objects []Recorded
	seen    map[objects.Key]bool
}

// helmRecord has the fields of Helm's release that are read. The values of the release are not.
type helmRecord struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Info      struct {
		Status string `json:"status"`
	} `json:"info"`
	Manifest string `json:"manifest"`
	Hooks    []struct {
		Manifest string `json:"manifest"`
	} `json:"hooks"`
	Chart struct {
		Files []struct {
			Name string `json:"name"`
			Data []byte `json:"data"`
		} `json:"files"`
	} `json:"chart"`
}

// ReadHelmRelease reads the field release of a Secret or ConfigMap of Helm, which is JSON, compressed, as
// base64. It has to be of this release. Errors quote nothing of it.
func ReadHelmRelease(data, namespace, name string) (*HelmRelease, error) {
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, errors.New("it is not encoded as base64")
	}
	// Helm reads records without compression, too.
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b, 0x08}) {
		if text, err = unzip(text); err != nil {
			return nil, err
		}
	}
	var r helmRecord
	if json.Unmarshal(text, &r) != nil {
		return nil, errors.New("it is no JSON of a release")
	}
	if r.Name != name || cmp.Or(r.Namespace, namespace) != namespace {
		return nil, errors.New("it is of another release than its name and namespace say")
	}
	out := &HelmRelease{Status: r.Info.Status}
	if err := out.add("manifest", []byte(r.Manifest), namespace, false); err != nil {
		return nil, err
	}
	for _, hook := range r.Hooks {
		if err := out.add("hook", []byte(hook.Manifest), namespace, true); err != nil {
			return nil, err
		}
	}
	for _, f := range r.Chart.Files {
		if strings.HasPrefix(f.Name, "crds/") {
			if err := out.add("definition", f.Data, namespace, true); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func unzip(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, errors.New("it is not compressed by gzip")
	}
	defer z.Close()
	out, err := io.ReadAll(io.LimitReader(z, limits.HelmReleaseBytes+1))
	switch {
	case err != nil:
		return nil, errors.New("it is not compressed by gzip")
	case len(out) > limits.HelmReleaseBytes:
		return nil, fmt.Errorf("it has more than %d bytes uncompressed, which is the limit", limits.HelmReleaseBytes)
	}
	return out, nil
}

// add adds the objects of a text of the record.
func (r *HelmRelease) add(what string, data []byte, namespace string, incidental bool) error {
	var failed error
	problems := document.EachWithDoubts(what, data, func(d *document.Document) {
		failed = cmp.Or(failed, r.object(d.Value, namespace, incidental, true))
	})
	if len(problems) > 0 && failed == nil && problems[0].Document > 0 {
		failed = fmt.Errorf("document %d of its %s is no valid YAML", problems[0].Document, what)
	} else if len(problems) > 0 && failed == nil {
		failed = fmt.Errorf("its %s is no valid YAML", what)
	}
	return failed
}

// object adds an object, or those of a list.
func (r *HelmRelease) object(value any, namespace string, incidental, lists bool) error {
	content, isMap := value.(map[string]any)
	u := unstructured.Unstructured{Object: content}
	gvk := u.GroupVersionKind()
	items, isList := content["items"].([]any)
	switch {
	case isMap && lists && isList && strings.HasSuffix(gvk.Kind, "List"):
		for _, item := range items {
			if err := r.object(item, namespace, incidental, false); err != nil {
				return err
			}
		}
		return nil
	case !isMap || gvk.Kind == "" || gvk.Version == "" || u.GetName() == "":
		return errors.New("one of its objects lacks apiVersion, kind or name")
	case len(r.Objects) >= limits.PackageObjects:
		return fmt.Errorf("it has more than %d objects, which is the limit of a package", limits.PackageObjects)
	}
	o := Recorded{gvk, cmp.Or(u.GetNamespace(), namespace), u.GetName(), incidental}
	if r.seen == nil {
		r.seen = map[objects.Key]bool{}
	}
	if key := o.Keys()[0]; !r.seen[key] {
		r.seen[key] = true
		r.Objects = append(r.Objects, o)
	}
	return nil
}

// Labels and annotations of kapp.
const (
	KappRecordLabel = "kapp.k14s.io/is-app"
	KappAppLabel    = "kapp.k14s.io/app"
	kappIdentity    = "kapp.k14s.io/identity"
)

// KappApp is an app, as kapp records it.
type KappApp struct {
	// Value of [KappAppLabel] on its objects.
	Value string
	// Kinds of its objects, and the namespaces that they were in with the last change.
	Kinds      []schema.GroupKind
	Namespaces []string
}

// ReadKappApp reads the ConfigMap in which kapp records an app.
func ReadKappApp(data map[string]string) (*KappApp, error) {
	var spec struct {
		LabelKey   string             `json:"labelKey"`
		LabelValue string             `json:"labelValue"`
		UsedGKs    []schema.GroupKind `json:"usedGKs"`
		LastChange struct {
			Namespaces []string `json:"namespaces"`
		} `json:"lastChange"`
	}
	switch {
	case json.Unmarshal([]byte(data["spec"]), &spec) != nil:
		return nil, errors.New("its field spec is no JSON of an app")
	case spec.LabelKey != KappAppLabel || spec.LabelValue == "" || len(validation.IsValidLabelValue(spec.LabelValue)) > 0:
		return nil, fmt.Errorf("it names no value of the label %s", KappAppLabel)
	case len(spec.UsedGKs) == 0:
		return nil, errors.New("it names no kinds of objects, as records of older versions of kapp do. Deploy it once more with a later one, or name the objects")
	case len(spec.UsedGKs) > limits.KappKinds || len(spec.LastChange.Namespaces) > limits.KappKinds:
		return nil, fmt.Errorf("it names more than %d kinds or namespaces, which is the limit. Name the objects", limits.KappKinds)
	}
	return &KappApp{Value: spec.LabelValue, Kinds: spec.UsedGKs, Namespaces: spec.LastChange.Namespaces}, nil
}

// Deployed reports whether kapp itself made an object that has the label of the app. Pods and others that
// controllers made have the label, and may have a copy of the annotation of what they were made for.
func (a *KappApp) Deployed(o *unstructured.Unstructured) bool {
	gvk := o.GroupVersionKind()
	identity := fmt.Sprintf("v1;%s/%s/%s/%s;", o.GetNamespace(), gvk.Group, gvk.Kind, o.GetName())
	return o.GetLabels()[KappAppLabel] == a.Value && strings.HasPrefix(o.GetAnnotations()[kappIdentity], identity)
}
