package migrate

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/objects"
)

// installation has the objects of one Helm release, according to its own record. It is empty for
// named objects.
type installation struct {
	release, namespace string
	// recorded objects are in the namespace of the release if they name none, because a record does
	// not state which kinds have namespaces.
	recorded []objects.Key
	// records are the Secrets of all revisions, newest first.
	records []client.Object
}

// readRelease reads the newest deployed revision of a release in the namespace.
func readRelease(ctx context.Context, h *handoverPlan, name string) (*installation, error) {
	in := &installation{release: name, namespace: h.cluster.Namespace}
	// Only the metadata is listed, because each record contains a whole chart.
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := h.Client.List(ctx, list, client.InNamespace(in.namespace), client.MatchingLabels{"owner": "helm", "name": name})
	if err != nil {
		return nil, h.cluster.Explain("cannot list Secrets in namespace "+in.namespace, err)
	}

	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		in.records = append(in.records, &list.Items[i])
	}

	slices.SortFunc(in.records, func(a, b client.Object) int { return in.revision(b) - in.revision(a) })
	for _, o := range in.records {
		switch status := o.GetLabels()["status"]; {
		case status == "deployed":
			secret := &corev1.Secret{}
			if err := h.Client.Get(ctx, client.ObjectKeyFromObject(o), secret); err != nil {
				return nil, h.cluster.Explain("cannot read Secret "+o.GetName(), err)
			}
			if in.recorded, err = readHelm(string(secret.Data["release"]), in.namespace, name); err != nil {
				err = fmt.Errorf("cannot read Secret %s, as Helm's record of a release: %w", o.GetName(), err)
			}

			return in, err
		case strings.HasPrefix(status, "pending-") || status == "uninstalling":
			return nil, fmt.Errorf("revision %d of the release %s of Helm is %s: wait until Helm is done, or end it with helm rollback %s -n %s",
				in.revision(o), name, terminal.Line(status), name, in.namespace)
		}
	}

	return nil, cluster.NotFoundError(fmt.Sprintf("Helm has no Secret of a deployed release %s in namespace %s: see helm list -A, and choose the namespace with -n", name, in.namespace))
}

// revision is the number of a revision.
func (in *installation) revision(o client.Object) int {
	// Helm names its Secrets sh.helm.release.v1.NAME.vREVISION. Another name sorts as revision 0.
	number, _ := strconv.Atoi(strings.TrimPrefix(o.GetName(), "sh.helm.release.v1."+in.release+".v"))
	return number
}

// readHelm returns the objects in the field release of a Helm Secret: JSON, compressed, as base64.
// Errors do not quote its content.
func readHelm(data, namespace, name string) (keys []objects.Key, err error) {
	var text []byte
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	if err == nil {
		// The limit bounds a small Secret that expands to a huge one.
		text, err = io.ReadAll(io.LimitReader(z, limits.HelmReleaseBytes+1))
	}

	var r struct{ Name, Namespace, Manifest string }
	switch {
	case err != nil:
		// The cause is omitted, because it can quote the values of a chart.
		return nil, errors.New("it is not compressed by gzip and encoded as base64")
	case len(text) > limits.HelmReleaseBytes:
		return nil, fmt.Errorf("it has more than %d bytes uncompressed, which is the limit", limits.HelmReleaseBytes)
	case json.Unmarshal(text, &r) != nil:
		return nil, errors.New("it is not valid JSON of a release")
	case r.Name != name || cmp.Or(r.Namespace, namespace) != namespace:
		return nil, errors.New("it belongs to another release than its name and namespace")
	}

	problems := document.EachWithDoubts("manifest", []byte(r.Manifest), func(d *document.Document) {
		content, _ := d.Value.(map[string]any)
		key := objectdiff.KeyOf(content, namespace)
		if key.Kind == "" || key.Name == "" {
			err = errors.New("one of its objects lacks apiVersion, kind or name")
		}
		keys = append(keys, key)
	})
	if len(problems) > 0 {
		err = errors.New("its manifest is not valid YAML")
	}

	return keys, err
}

// keys returns the keys of all objects, both as namespaced and as cluster-scoped ones.
func (in *installation) keys() (all []object) {
	for _, key := range in.recorded {
		all = append(all, object{Key: key})
		key.Namespace = ""
		all = append(all, object{Key: key})
	}
	return all
}

// choose adds the objects that the package contains to the named ones, and explains what happens to
// the others. Namespaces have to be named, because a package that contains a Namespace deletes its
// whole content.
func (in *installation) choose(ctx context.Context, h *handoverPlan) error {
	phases, err := h.phases()
	if err != nil || in.release == "" {
		return err
	}

	brought := false
	for _, recorded := range in.recorded {
		key := recorded
		// The record does not show the scope: in the package, a cluster-scoped object has no
		// namespace.
		if phases[key] == "" {
			key.Namespace = ""
		}

		switch {
		case phases[key] == "" || key.Kind == "Namespace":
			// A Namespace deletes its content, so its name on the command line is the consent.
			h.others = append(h.others, step{object: object{Key: recorded}, Done: true, Note: "stays unchanged: the package does not contain it, or it has to be named"})
			continue
		case !slices.ContainsFunc(h.objects, func(o object) bool { return o.Key == key }):
			if err := h.readRecorded(ctx, key); err != nil {
				return err
			}
		}

		brought = true
	}

	if !brought {
		return fmt.Errorf("%s contains none of the objects of the release %s", h.Target, in.release)
	}
	h.notes = append(h.notes, "Helm's record of the release "+in.release+" is deleted once the package has the objects, so that helm uninstall cannot delete them")
	return nil
}

// readRecorded reads an object of a record that the package contains, unless it is absent.
func (h *handoverPlan) readRecorded(ctx context.Context, key objects.Key) error {
	u := &unstructured.Unstructured{}
	mapping, err := h.Client.RESTMapper().RESTMapping(key.GroupKind())
	if err == nil {
		u.SetGroupVersionKind(mapping.GroupVersionKind)
		err = h.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, u)
	}

	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		h.others = append(h.others, step{object: object{Key: key}, Done: true, Note: "is not in the cluster: the package creates it"})
	case err != nil:
		return h.cluster.Explain("cannot read "+key.String(), err)
	default:
		h.objects = append(h.objects, object{Key: key, Live: u})
	}

	return nil
}

// forget deletes the record. The newest Secret is last, because it allows a repetition.
func (in *installation) forget(ctx context.Context, c *adoptCommand, h *handoverPlan) error {
	for _, r := range slices.Backward(in.records) {
		// The preconditions keep a Secret that Helm has changed since it was read.
		err := h.Client.Delete(ctx, r, client.Preconditions{UID: ptr.To(r.GetUID()), ResourceVersion: ptr.To(r.GetResourceVersion())})
		if client.IgnoreNotFound(err) != nil {
			return in.remains(h.cluster.Explain("cannot delete Secret "+r.GetName(), err))
		}
	}
	if len(in.records) > 0 {
		fmt.Fprintln(c.Streams.Out, "Helm's record of the release "+terminal.Line(in.release)+" is deleted")
	}
	return nil
}

// remains adds that the record still exists.
func (in *installation) remains(err error) error {
	if in.release == "" {
		return err
	}
	text := fmt.Sprintf("Helm's record of the release %[1]s still exists: do not run helm uninstall, which deletes the objects. Run this command again once the package has them, or: "+
		"kubectl delete secrets -n %[2]s -l owner=helm,name=%[1]s", in.release, in.namespace)
	if err == nil {
		return errors.New(text)
	}
	return fmt.Errorf("%w. %s", err, text)
}
