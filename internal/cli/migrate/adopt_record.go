package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/fields"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/handover"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/objects"
)

// installation is what Helm or kapp has installed, by its own record; empty for objects that are named.
type installation struct {
	// record such as "Helm's record of the release web", and the commands that use it to delete the objects,
	// and that delete the record alone.
	record, deletes, remedy string
	// recorded objects have not been read yet: of these, only what the package brings is.
	recorded []handover.Recorded
	objects  []handover.Object
	// records are deleted once the package has the objects; list reads them again.
	records []client.Object
	// release of Helm in namespace, whose objects name it; empty for an app of kapp.
	release, namespace string
	list               func(context.Context) ([]client.Object, error)
}

// installation reads the record that a flag names.
func (c *adoptCommand) installation(ctx context.Context, h *handoverPlan) (*installation, error) {
	switch {
	case c.release != "":
		return readRelease(ctx, h, c.release)
	case c.kappApp != "":
		return readKappApp(ctx, h, c.kappApp)
	}
	return &installation{}, nil
}

// choose adds the objects that the package brings to those that are named, and says what becomes of the others.
func (in *installation) choose(ctx context.Context, h *handoverPlan) error {
	if in.record == "" {
		return nil
	}
	phases, err := h.phases()
	if err != nil {
		return err
	}
	before := len(h.objects)
	named := func(key objects.Key) bool {
		return slices.ContainsFunc(h.objects[:before], func(o handover.Object) bool { return o.Key == key })
	}
	var left []objects.Key
	brought := 0
	for i := range in.recorded {
		o := &in.recorded[i]
		key, brings := in.key(o, phases)
		switch {
		case brings && named(key):
			brought++
		case brings:
			brought++
			if err := h.readRecorded(ctx, o, key); err != nil {
				return err
			}
		case !o.Incidental:
			left = append(left, key)
		}
	}
	for _, o := range in.objects {
		switch {
		case phases[o.Key] == "":
			left = append(left, o.Key)
			continue
		case !named(o.Key):
			h.objects = append(h.objects, o)
		}
		brought++
	}
	if brought == 0 {
		return fmt.Errorf("%s brings none of the objects in %s", h.Target, in.record)
	}
	for _, key := range left[:min(len(left), limits.RecordedLeft)] {
		h.others = append(h.others, handover.Step{Object: handover.Object{Key: key}, Done: true, Note: "stays as it is: the package does not bring it"})
	}
	if more := len(left) - limits.RecordedLeft; more > 0 {
		h.notes = append(h.notes, fmt.Sprintf("%s more that the package does not bring stay as they are", terminal.Count(more, "object")))
	}
	h.notes = append(h.notes, in.record+" is deleted once the package has the objects, so that "+in.deletes+" deletes nothing")
	return in.namespaces(ctx, h)
}

// key is the key of an object, and whether the package brings it.
func (in *installation) key(o *handover.Recorded, phases map[objects.Key]string) (key objects.Key, brings bool) {
	keys := o.Keys()
	for _, key := range keys {
		if phases[key] != "" {
			return key, true
		}
	}
	if namespaced, known := loader.BuiltInScope(o.GroupKind()); known && !namespaced {
		return keys[1], false
	}
	return keys[0], false
}

// keys are those of all objects.
func (in *installation) keys() []handover.Object {
	all := slices.Clone(in.objects)
	for i := range in.recorded {
		for _, key := range in.recorded[i].Keys() {
			all = append(all, handover.Object{Key: key})
		}
	}
	return all
}

// namespaces adds Namespaces that the package brings and the tool did not install: the
// package must not delete the objects in them.
func (in *installation) namespaces(ctx context.Context, h *handoverPlan) error {
	keeps := map[objects.Key]bool{}
	var all []objects.Key
	err := h.each(func(_ string, key objects.Key, value map[string]any) {
		known := slices.ContainsFunc(h.objects, func(o handover.Object) bool { return o.Key == key && in.installed(o.Live) })
		if key.Group == "" && key.Kind == "Namespace" && !known {
			all = append(all, key)
			keeps[key] = fields.Text(value, "metadata", "annotations", corev1alpha1.DeletionPolicyAnnotation) == corev1alpha1.DeletionPolicyKeep
		}
	})
	if err != nil {
		return err
	}
	for _, key := range all {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(key.Kind))
		err := h.Client.Get(ctx, client.ObjectKey{Name: key.Name}, u)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return h.cluster.Explain("cannot read "+key.String(), err)
		case metav1.GetControllerOf(u) != nil:
			continue // the plan says whose it is
		case !keeps[key]:
			return fmt.Errorf("nothing was changed: the package brings %s, which is not in %s, and would delete all that is in it. "+
				"Take it out of the package, as kickstart --add-namespaces=false does, or annotate it there with %s: %s",
				key, in.record, corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep)
		}
		if !slices.ContainsFunc(h.objects, func(o handover.Object) bool { return o.Key == key }) {
			h.objects = append(h.objects, handover.Object{Key: key, Live: u})
		}
	}
	return nil
}

// installed reports whether an object itself says that the release installed it, as Helm writes it since 3.2. Everyone
// who may write Secrets in the namespace can write a record.
func (in *installation) installed(live *unstructured.Unstructured) bool {
	if in.release == "" || live == nil {
		return true
	}
	annotations := live.GetAnnotations()
	return annotations["meta.helm.sh/release-name"] == in.release && annotations["meta.helm.sh/release-namespace"] == in.namespace
}

// forget deletes the record.
func (in *installation) forget(ctx context.Context, c *adoptCommand, h *handoverPlan) error {
	if in.record == "" {
		return nil
	}
	for _, r := range slices.Backward(in.records) { // the newest one last, by which this can be done again
		err := h.Client.Delete(ctx, r, client.Preconditions{UID: ptr.To(r.GetUID()), ResourceVersion: ptr.To(r.GetResourceVersion())})
		if client.IgnoreNotFound(err) != nil {
			return in.remains(h.cluster.Explain("cannot delete "+in.record, err))
		}
	}
	left, err := in.list(ctx)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%s was written again meanwhile", left[0].GetName())
	}
	if err != nil {
		return in.remains(err)
	}
	fmt.Fprintln(c.Streams.Out, terminal.Line(in.record+" is deleted"))
	return nil
}

// remains adds that the record is still there.
func (in *installation) remains(err error) error {
	if in.record == "" {
		return err
	}
	text := fmt.Sprintf("%s is still there: do not run %s, which deletes the objects. Run this command again once the package has them, or: %s", in.record, in.deletes, in.remedy)
	if err == nil {
		return errors.New(text)
	}
	return fmt.Errorf("%w. %s", err, text)
}

const (
	helmSecretType = "helm.sh/release.v1"
	helmPrefix     = "sh.helm.release.v1."
	helmField      = "release"
)

// readRelease reads the newest deployed revision of a release of Helm in the namespace.
func readRelease(ctx context.Context, h *handoverPlan, name string) (*installation, error) {
	in := &installation{record: "Helm's record of the release " + name, deletes: "helm uninstall", release: name, namespace: h.cluster.Namespace}
	namespace := h.cluster.Namespace
	for _, kind := range []string{"Secret", "ConfigMap"} { // those of HELM_DRIVER=configmap
		in.list = func(ctx context.Context) ([]client.Object, error) {
			all, err := listRecords(ctx, h, kind, client.MatchingLabels{"owner": "helm", "name": name}, limits.HelmRevisions)
			return slices.DeleteFunc(all, func(o client.Object) bool { return helmRevision(o, name) == 0 }), err
		}
		in.remedy = fmt.Sprintf("kubectl delete %ss -n %s -l owner=helm,name=%s", strings.ToLower(kind), namespace, name)
		all, err := in.list(ctx)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			continue
		}
		in.records = all
		newest, err := newestRelease(all, namespace, name)
		if err != nil {
			return nil, err
		}
		return in, in.readHelm(ctx, h, kind, newest, name)
	}
	return nil, cluster.NotFoundError(fmt.Sprintf("Helm has no release %s in namespace %s: see helm list -A, and choose the namespace with -n", name, namespace))
}

// helmRevision is the number of a revision, or 0 for an object that is no record of it.
func helmRevision(o client.Object, release string) int {
	text, is := strings.CutPrefix(o.GetName(), helmPrefix+release+".v")
	number, err := strconv.Atoi(text)
	if !is || err != nil || number < 1 {
		return 0
	}
	return number
}

// newestRelease returns the newest revision that is deployed, unless Helm is at work on a newer one.
func newestRelease(all []client.Object, namespace, release string) (client.Object, error) {
	slices.SortFunc(all, func(a, b client.Object) int { return helmRevision(b, release) - helmRevision(a, release) })
	for _, o := range all {
		switch status := o.GetLabels()["status"]; {
		case status == "deployed":
			return o, nil
		case strings.HasPrefix(status, "pending-") || status == "uninstalling":
			return nil, fmt.Errorf("revision %d of the release %s of Helm is %s: wait until Helm is done, or end it by helm rollback %s -n %s",
				helmRevision(o, release), release, terminal.Line(status), release, namespace)
		}
	}
	return nil, fmt.Errorf("no revision of the release %s of Helm in namespace %s is deployed: see helm history %s -n %s", release, namespace, release, namespace)
}

// readHelm reads a revision, and its objects.
func (in *installation) readHelm(ctx context.Context, h *handoverPlan, kind string, at client.Object, name string) error {
	doing := "cannot read " + kind + " " + at.GetName()
	data := ""
	key := client.ObjectKeyFromObject(at)
	if kind == "Secret" {
		secret := &corev1.Secret{}
		if err := h.Client.Get(ctx, key, secret); err != nil {
			return h.cluster.Explain(doing, err)
		}
		if secret.Type != helmSecretType {
			return fmt.Errorf("the Secret %s is none of Helm: its type is not %s", at.GetName(), helmSecretType)
		}
		data = string(secret.Data[helmField])
	} else {
		cm := &corev1.ConfigMap{}
		if err := h.Client.Get(ctx, key, cm); err != nil {
			return h.cluster.Explain(doing, err)
		}
		data = cm.Data[helmField]
	}
	release, err := handover.ReadHelmRelease(data, at.GetNamespace(), name)
	if err != nil {
		return fmt.Errorf("%s, as Helm's record of a release: %w", doing, err)
	}
	in.recorded = release.Objects
	return nil
}

// readRecorded reads an object of a record that the package brings, unless it is absent.
func (h *handoverPlan) readRecorded(ctx context.Context, o *handover.Recorded, key objects.Key) error {
	mapping, err := h.Client.RESTMapper().RESTMapping(o.GroupKind(), o.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = h.Client.RESTMapper().RESTMapping(o.GroupKind())
	}
	u := &unstructured.Unstructured{}
	if err == nil {
		u.SetGroupVersionKind(mapping.GroupVersionKind)
		err = h.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, u)
	}
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		if !o.Incidental {
			h.others = append(h.others, handover.Step{Object: handover.Object{Key: key}, Done: true, Note: "is not in the cluster: the package creates it"})
		}
		return nil
	case err != nil:
		return h.cluster.Explain("cannot read "+key.String(), err)
	}
	h.objects = append(h.objects, handover.Object{Key: key, Live: u})
	return nil
}

// listRecords lists the metadata of objects of a kind in the namespace.
func listRecords(ctx context.Context, h *handoverPlan, kind string, labels client.MatchingLabels, most int64) ([]client.Object, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	if err := h.Client.List(ctx, list, client.InNamespace(h.cluster.Namespace), labels, client.Limit(most)); err != nil {
		return nil, h.cluster.Explain("cannot list "+kind+"s in namespace "+h.cluster.Namespace, err)
	}
	if list.Continue != "" {
		return nil, fmt.Errorf("there are more than %d %ss of one record in namespace %s, which is the limit: name the objects", most, kind, h.cluster.Namespace)
	}
	var out []client.Object
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// kappSuffix is that of records that kapp has written with KAPP_FQ_CONFIGMAP_NAMES.
const kappSuffix = ".apps.k14s.io"

// readKappApp reads the record of an app of kapp, and the objects that have its label.
func readKappApp(ctx context.Context, h *handoverPlan, name string) (*installation, error) {
	namespace := h.cluster.Namespace
	record, err := kappRecord(ctx, h, name)
	if err != nil {
		return nil, err
	}
	app, err := handover.ReadKappApp(record.Data)
	if err != nil {
		return nil, fmt.Errorf("cannot use ConfigMap %s/%s, kapp's record of an app: %w", namespace, record.Name, err)
	}
	in := &installation{
		record: "kapp's record of the app " + name, deletes: "kapp delete",
		remedy: fmt.Sprintf("kubectl delete configmap %s -n %s", record.Name, namespace),
	}
	changes, err := listRecords(ctx, h, "ConfigMap", client.MatchingLabels{"kapp.k14s.io/is-app-change": "", "kapp.k14s.io/app-change-app": name}, limits.KappChanges)
	if err != nil {
		return nil, err
	}
	in.records = slices.Insert(changes, 0, client.Object(record))
	in.list = func(ctx context.Context) ([]client.Object, error) {
		again := &corev1.ConfigMap{}
		err := h.Client.Get(ctx, client.ObjectKeyFromObject(record), again)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return []client.Object{again}, err
	}
	for _, kind := range app.Kinds {
		if err := in.readKapp(ctx, h, app, kind); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func kappRecord(ctx context.Context, h *handoverPlan, name string) (*corev1.ConfigMap, error) {
	for _, full := range []string{name + kappSuffix, name} {
		record := &corev1.ConfigMap{}
		err := h.Client.Get(ctx, client.ObjectKey{Namespace: h.cluster.Namespace, Name: full}, record)
		if client.IgnoreNotFound(err) != nil {
			return nil, h.cluster.Explain("cannot read ConfigMap "+full, err)
		}
		if _, is := record.Labels[handover.KappRecordLabel]; err == nil && is {
			return record, nil
		}
	}
	return nil, cluster.NotFoundError(fmt.Sprintf("kapp has no app %s in namespace %s: see kapp list -A, and choose the namespace with -n. An app that is a label alone has no record: name its objects", name, h.cluster.Namespace))
}

// readKapp reads the objects of one kind in all namespaces, or in those of the record where only these may be read.
func (in *installation) readKapp(ctx context.Context, h *handoverPlan, app *handover.KappApp, kind schema.GroupKind) error {
	mapping, err := h.Client.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil // and so there is none
	}
	if err != nil {
		return h.cluster.Explain("cannot find the kind "+kind.String(), err)
	}
	err = in.listKapp(ctx, h, app, mapping, "")
	if apierrors.IsForbidden(err) && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		err = nil
		for _, namespace := range app.Namespaces {
			if err = in.listKapp(ctx, h, app, mapping, namespace); err != nil {
				break
			}
		}
	}
	return h.cluster.Explain("cannot list objects of the kind "+kind.String(), err)
}

func (in *installation) listKapp(ctx context.Context, h *handoverPlan, app *handover.KappApp, mapping *meta.RESTMapping, namespace string) error {
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(mapping.GroupVersionKind.Kind + "List"))
		err := h.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{handover.KappAppLabel: app.Value}, client.Limit(limits.NamedPage), client.Continue(next))
		if err != nil {
			return err
		}
		for i := range list.Items {
			if u := &list.Items[i]; app.Deployed(u) {
				in.objects = append(in.objects, handover.Object{Key: objectdiff.KeyOf(u.Object, ""), Live: u})
			}
		}
		if len(in.objects) > limits.PackageObjects {
			return fmt.Errorf("the app has more than %d objects, which is the limit of a package", limits.PackageObjects)
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}
