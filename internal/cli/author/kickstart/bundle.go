package kickstart

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Folders of a bundle of the Operator Lifecycle Manager, in the format
// registry+v1,
// https://olm.operatorframework.io/docs/tasks/creating-operator-bundle.
const (
	BundleManifests = "manifests"
	BundleMetadata  = "metadata"
)

// Bundle is what a bundle turned out to hold.
type Bundle struct {
	// Name of the operator's package.
	Name string
	// Namespace that the operator is to run in.
	Namespace string
	Inputs    []Input
	// Notes say what of it has no counterpart.
	Notes []string
}

// csvKind is the kind that describes how an operator is installed.
const csvKind = "ClusterServiceVersion"

// ReadBundle turns a bundle into ordinary objects: the Deployments of its
// ClusterServiceVersion with ServiceAccounts and their rights, as the Operator
// Lifecycle Manager makes them for all namespaces, and the other objects as they
// are. namespace replaces the one that the bundle suggests.
func ReadBundle(manifests, metadata loader.Files, namespace string) (*Bundle, error) {
	b := &Bundle{Namespace: namespace}
	if err := b.metadata(metadata); err != nil {
		return nil, err
	}
	found := false
	for _, p := range manifests.Paths() {
		if !strings.HasSuffix(p, ".yaml") && !strings.HasSuffix(p, ".yml") && !strings.HasSuffix(p, ".json") {
			continue
		}
		in := Input{Name: BundleManifests + "/" + p, Data: manifests[p]}
		csv, err := csvOf(in)
		if err != nil {
			return nil, err
		}
		if csv == nil {
			b.Inputs = append(b.Inputs, in)
			continue
		}
		if found {
			return nil, errors.New("the bundle has two objects of the kind " + csvKind + ", and not one")
		}
		found = true
		if in.Data, err = b.install(csv); err != nil {
			return nil, err
		}
		b.Inputs = append(b.Inputs, in)
	}
	if !found {
		return nil, errors.New("the image is no bundle of the Operator Lifecycle Manager: there is no " + csvKind + " in /" + BundleManifests)
	}
	return b, nil
}

// metadata reads the name of the package.
func (b *Bundle) metadata(files loader.Files) error {
	var problems violation.Violations
	for _, p := range []string{"annotations.yaml", "annotations.yml"} {
		data, ok := files[p]
		if !ok {
			continue
		}
		problems = append(problems, document.Each(BundleMetadata+"/"+p, data, func(d *document.Document) {
			b.Name = cmp.Or(b.Name, text(d.Value, "annotations", "operators.operatorframework.io.bundle.package.v1"))
			if media := text(d.Value, "annotations", "operators.operatorframework.io.bundle.mediatype.v1"); media != "" && media != "registry+v1" {
				problems = append(problems, violation.Violation{
					Reason: violation.ReasonUnsupported, Path: d.Path, Details: fmt.Sprintf("the bundle is of the format %q", media), Remedy: "Only registry+v1 can be read.",
				})
			}
		})...)
	}
	if err := problems.Err(); err != nil {
		return err
	}
	if b.Name == "" {
		return errors.New("the image is no bundle of the Operator Lifecycle Manager: /" + BundleMetadata + "/annotations.yaml names no package")
	}
	return nil
}

// csvOf returns the ClusterServiceVersion in a file; nil where it is another one.
func csvOf(in Input) (map[string]any, error) {
	var csv map[string]any
	documents := 0
	problems := document.Each(in.Name, in.Data, func(d *document.Document) {
		documents++
		if m, ok := d.Value.(map[string]any); ok && m["kind"] == csvKind {
			csv = m
		}
	})
	if csv != nil && documents > 1 {
		return nil, fmt.Errorf("%s has other objects beside its %s", in.Name, csvKind)
	}
	return csv, problems.Err()
}

// install makes the objects that a ClusterServiceVersion describes, as a stream of
// YAML documents.
func (b *Bundle) install(csv map[string]any) ([]byte, error) {
	b.Namespace = cmp.Or(b.Namespace, text(csv, "metadata", "annotations", "operatorframework.io/suggested-namespace"), b.Name)
	spec := dig(csv, "spec", "install", "spec")
	if strategy := text(csv, "spec", "install", "strategy"); strategy != "deployment" {
		return nil, fmt.Errorf("the %s has the install strategy %q: only deployment can be turned into objects", csvKind, strategy)
	}
	w := streamWriter{}
	accounts := map[string]bool{"default": true}
	b.rights(&w, accounts, dig(spec, "clusterPermissions"), "ClusterRole")
	b.rights(&w, accounts, dig(spec, "permissions"), "Role")
	target := b.target(csv)
	list, _ := dig(spec, "deployments").([]any)
	for _, item := range list {
		b.deployment(&w, accounts, item, target)
	}
	for field, what := range map[string]string{"webhookdefinitions": "webhooks", "apiservicedefinitions": "API services"} {
		definitions, _ := dig(csv, "spec", field).([]any)
		if owned, ok := dig(csv, "spec", field, "owned").([]any); ok {
			definitions = owned
		}
		if len(definitions) > 0 {
			b.Notes = append(b.Notes, fmt.Sprintf("the bundle has %d %s, whose certificates the Operator Lifecycle Manager makes: they were left out, and the operator may not start without them", len(definitions), what))
		}
	}
	slices.Sort(b.Notes)
	return w.out.Bytes(), w.err
}

// target is the annotation from which operators read the namespaces to watch:
// empty for all of them.
func (b *Bundle) target(csv map[string]any) string {
	modes, _ := dig(csv, "spec", "installModes").([]any)
	for _, mode := range modes {
		if supported, _ := dig(mode, "supported").(bool); supported && text(mode, "type") == "AllNamespaces" {
			return ""
		}
	}
	b.Notes = append(b.Notes, "the operator does not support all namespaces; it is to watch the one that it runs in")
	return b.Namespace
}

// rights makes ServiceAccounts with roles and bindings.
func (b *Bundle) rights(w *streamWriter, accounts map[string]bool, permissions any, kind string) {
	list, _ := permissions.([]any)
	for i, item := range list {
		account := cmp.Or(text(item, "serviceAccountName"), "default")
		b.account(w, accounts, account)
		name := fmt.Sprintf("%s-%s", b.Name, account)
		if i > 0 {
			name = fmt.Sprintf("%s-%d", name, i+1)
		}
		meta := map[string]any{"name": name}
		if kind == "Role" {
			meta["namespace"] = b.Namespace
		}
		rules := dig(item, "rules")
		if rules == nil {
			rules = []any{}
		}
		const group = "rbac.authorization.k8s.io"
		w.add(map[string]any{"apiVersion": group + "/v1", "kind": kind, "metadata": meta, "rules": rules})
		w.add(map[string]any{
			"apiVersion": group + "/v1", "kind": kind + "Binding", "metadata": meta,
			"roleRef":  map[string]any{"apiGroup": group, "kind": kind, "name": name},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": b.Namespace}},
		})
	}
}

func (b *Bundle) account(w *streamWriter, accounts map[string]bool, name string) {
	if accounts[name] {
		return
	}
	accounts[name] = true
	w.add(map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name, "namespace": b.Namespace}})
}

func (b *Bundle) deployment(w *streamWriter, accounts map[string]bool, item any, target string) {
	spec, ok := dig(item, "spec").(map[string]any)
	if !ok {
		w.err = errors.Join(w.err, fmt.Errorf("the deployment %q of the %s has no spec", text(item, "name"), csvKind))
		return
	}
	if account := text(spec, "template", "spec", "serviceAccountName"); account != "" {
		b.account(w, accounts, account)
	}
	child(spec, "template", "metadata", "annotations")["olm.targetNamespaces"] = target
	meta := map[string]any{"name": text(item, "name"), "namespace": b.Namespace}
	if labels, ok := dig(item, "label").(map[string]any); ok {
		meta["labels"] = labels
	}
	w.add(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
}

// streamWriter writes objects as documents of one file; JSON is YAML.
type streamWriter struct {
	out bytes.Buffer
	err error
}

func (w *streamWriter) add(object map[string]any) {
	data, err := json.Marshal(object)
	if err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	w.out.WriteString("---\n")
	w.out.Write(data)
	w.out.WriteString("\n")
}
